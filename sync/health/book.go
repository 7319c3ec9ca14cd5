package health

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
)

const (
	// maxEntries is how many rules an operator may add, and maxExpression the length of an expression, as
	// in an Application.
	maxEntries    = 500
	maxExpression = 4096
	// ruleCostLimit is costLimit for a rule. It is lower, because rules are also asked by the hub, about what
	// its clusters send: a status with some hundred conditions is still within it.
	ruleCostLimit = costLimit / 10
)

// Entry is a rule in a file: it says in CEL how to compute the health of objects of some kinds. The
// expressions see metadata, spec and status. They are asked in this order: InProgress, Failed, Current;
// if none holds, or one asks for what the object does not have, it is in progress.
type Entry struct {
	// Group of the kinds; `*.example.com` for all groups of a domain.
	Group string `json:"group"`
	// Kinds that the rule is about; `*` for all of the group.
	Kinds []string `json:"kinds"`

	InProgress string `json:"inProgress,omitempty"`
	Failed     string `json:"failed,omitempty"`
	Current    string `json:"current"`

	// Conditions are the types of the conditions whose messages say why an object is not current, the
	// most telling first. Default: Ready.
	Conditions []string `json:"conditions,omitempty"`
}

// Book has the rules of kinds beyond those that kstatus and this package know. It is not changed once
// it is made.
type Book struct {
	exact map[schema.GroupKind]*Rule
	// wide are those for several groups, or all kinds of one, in the order in which they are asked.
	wide []*Rule
}

//go:embed known.yaml
var known []byte

// builtIn has the rules that Waybill comes with.
var builtIn = sync.OnceValue(func() *Book {
	book, err := NewBook(map[string]string{"known.yaml": string(known)})
	if err != nil {
		panic(fmt.Sprintf("rules that Waybill comes with: %s", err))
	}
	return book
})

// NewBook returns the rules of some files, by name, and what is wrong with those that are left out. Of two
// rules for a kind, the one that is read later wins, in the order of the names.
func NewBook(files map[string]string) (*Book, error) {
	book := &Book{exact: map[schema.GroupKind]*Rule{}}
	var errs []error
	read := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries, err := decode(files[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		for i, entry := range entries {
			if read++; read > maxEntries {
				return book, errors.Join(append(errs, fmt.Errorf("%s: more than %d rules: the rest is left out", name, maxEntries))...)
			}
			if err := book.add(entry); err != nil {
				errs = append(errs, fmt.Errorf("%s: rule %d (%s of group %q): %w", name, i+1, strings.Join(entry.Kinds, ", "), entry.Group, err))
			}
		}
	}
	return book, errors.Join(errs...)
}

// over returns the rules of a book, and those of another one for what the first does not say.
func (b *Book) over(other *Book) *Book {
	both := &Book{exact: maps.Clone(other.exact), wide: slices.Concat(b.wide, other.wide)}
	maps.Copy(both.exact, b.exact)
	return both
}

// like returns the rules with those of another book where these say the same.
func (b *Book) like(other *Book) *Book {
	for gk, rule := range b.exact {
		if known := other.exact[gk]; known.says(rule) {
			b.exact[gk] = known
		}
	}
	for i, rule := range b.wide {
		for _, known := range other.wide {
			if known.Group == rule.Group && slices.Equal(known.Kinds, rule.Kinds) && known.says(rule) {
				b.wide[i] = known
			}
		}
	}
	return b
}

func decode(text string) ([]Entry, error) {
	if err := expansion.Text([]byte(text), expansion.DefaultLimits()); err != nil {
		return nil, err
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("not a list of rules: %w", err)
	}
	var entries []Entry
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&entries); err != nil {
		return nil, fmt.Errorf("not a list of rules: %w", err)
	}
	return entries, nil
}

// add adds a rule, or returns what is wrong with it.
func (b *Book) add(entry Entry) error {
	if len(entry.Kinds) == 0 {
		return errors.New("kinds is missing")
	}
	if entry.Current == "" {
		return errors.New("current is missing")
	}
	rule := &Rule{Entry: entry}
	for _, part := range []struct {
		name, text string
		to         *program
	}{{"inProgress", entry.InProgress, &rule.inProgress}, {"failed", entry.Failed, &rule.failed}, {"current", entry.Current, &rule.current}} {
		if part.text == "" {
			continue
		}
		if len(part.text) > maxExpression {
			return fmt.Errorf("%s has more than %d characters", part.name, maxExpression)
		}
		compiled, err := compile(part.text, ruleCostLimit)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		*part.to = compiled
	}
	if strings.HasPrefix(entry.Group, "*.") || slices.Contains(entry.Kinds, "*") {
		if !strings.Contains(entry.Group, ".") {
			return errors.New("only the kinds of a group with a domain can be named together")
		}
		b.wide = slices.Insert(b.wide, 0, rule)
		return nil
	}
	for _, kind := range entry.Kinds {
		gk := schema.GroupKind{Group: entry.Group, Kind: kind}
		if !HasStatus(gk) || gk.Group == v1alpha1.Group {
			return fmt.Errorf("the health of a %s cannot be told in another way", kind)
		}
		b.exact[gk] = rule
	}
	return nil
}

// find returns the rule of a kind; nil for none.
func (b *Book) find(gk schema.GroupKind) *Rule {
	if rule := b.exact[gk]; rule != nil {
		return rule
	}
	if len(b.wide) == 0 || !HasStatus(gk) || gk.Group == v1alpha1.Group {
		return nil
	}
	for _, rule := range b.wide {
		if rule.isOf(gk) {
			return rule
		}
	}
	return nil
}

// isOf reports whether a rule for several groups, or all kinds of one, is about a kind.
func (e *Rule) isOf(gk schema.GroupKind) bool {
	domain, wide := strings.CutPrefix(e.Group, "*")
	of := e.Group == gk.Group || wide && strings.HasSuffix(gk.Group, domain)
	return of && (slices.Contains(e.Kinds, "*") || slices.Contains(e.Kinds, gk.Kind))
}

// says reports whether two rules are the same.
func (e *Rule) says(other *Rule) bool {
	if e == nil || other == nil {
		return e == other
	}
	return e.InProgress == other.InProgress && e.Failed == other.Failed && e.Current == other.Current && slices.Equal(e.Conditions, other.Conditions)
}

// Rule is an Entry that can be evaluated.
type Rule struct {
	Entry
	inProgress, failed, current program // but for current, they may be nil
}

// of returns the health of a live object.
func (e *Rule) of(object *unstructured.Unstructured) (Status, string) {
	if object.GetDeletionTimestamp() != nil {
		return OfMetadata(true)
	}
	if outdated(object.Object) {
		return InProgress, "its controller has not observed its latest change"
	}
	data := visible(object)
	holds := func(p program) (bool, error) {
		if p == nil {
			return false, nil
		}
		return evaluate(p, data)
	}
	for _, asked := range []struct {
		program
		Status
	}{{e.inProgress, InProgress}, {e.failed, Failed}, {e.current, Current}} {
		yes, err := holds(asked.program)
		if isCancelled(err) {
			return InProgress, "the rule for its kind takes too long to work out"
		}
		if yes && err == nil {
			return asked.Status, e.why(object.Object, asked.Status)
		}
	}
	return InProgress, e.why(object.Object, InProgress)
}

// outdated reports whether a status says that it is of another generation.
func outdated(object map[string]any) bool {
	observed, found, err := unstructured.NestedInt64(object, "status", "observedGeneration")
	generation, _, _ := unstructured.NestedInt64(object, "metadata", "generation")
	return found && err == nil && generation != 0 && observed != generation
}
