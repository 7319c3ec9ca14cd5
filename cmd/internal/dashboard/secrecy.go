package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/install"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/sync/render/values"
	"waybill.dev/waybill/sync/render/values/schema"
)

// secrecy hides what a chart marks as secret of its values: by writeOnly, or format password. The zero value hides
// nothing.
type secrecy struct {
	// schemas of the versions that values are for: what one of them marks is hidden.
	schemas []*schema.Schema
	marks   marks // of each
	// all hides every value: it is not known which are secret.
	all bool
}

// secrecyBy returns what hides what a schema marks; nil marks nothing.
func secrecyBy(s *schema.Schema, looks *schema.Looks) secrecy {
	if s == nil {
		return secrecy{}
	}
	return secrecy{schemas: []*schema.Schema{s}, marks: marks{s.Marks(looks)}}
}

// first returns the schema of the version that is wanted; nil if there is none.
func (c secrecy) first() *schema.Schema {
	if len(c.schemas) == 0 {
		return nil
	}
	return c.schemas[0]
}

// with hides what either hides.
func (c secrecy) with(other secrecy) secrecy {
	both := secrecy{schemas: slices.Concat(c.schemas, other.schemas), marks: slices.Clone(c.marks), all: c.all || other.all}
	for _, one := range other.marks {
		if !slices.Contains(both.marks, one) {
			both.marks = append(both.marks, one)
		}
	}
	return both
}

// marks is what schemas mark of one value, and of what is in it.
type marks []*schema.Mark

// secret reports whether one of them marks the value, or one that it is in.
func (m marks) secret() bool { return slices.ContainsFunc(m, (*schema.Mark).Secret) }

func (m marks) below(name string) marks {
	return m.next(func(one *schema.Mark) *schema.Mark { return one.Below(name) })
}

func (m marks) item() marks { return m.next((*schema.Mark).Item) }

func (m marks) next(step func(*schema.Mark) *schema.Mark) marks {
	var all marks
	for _, one := range m {
		if one = step(one); !one.None() {
			all = append(all, one)
		}
	}
	return all
}

// at returns what is marked at a path of names.
func (m marks) at(path []string) marks {
	for _, name := range path {
		m = m.below(name)
	}
	return m
}

// of returns a value at a path with what is secret hidden. It stays as it is: what differs is copied.
func (c secrecy) of(value any, path []string) any { return c.hidden(value, c.marks.at(path)) }

func (c secrecy) hidden(value any, at marks) any {
	switch {
	case value == nil, len(at) == 0 && !c.all:
		return value
	case at.secret():
		return mask.Hidden
	}
	switch v := value.(type) {
	case map[string]any:
		hidden := make(map[string]any, len(v))
		for name, below := range v {
			hidden[name] = c.hidden(below, at.below(name))
		}
		return hidden
	case []any:
		hidden, each := make([]any, len(v)), at.item()
		for i, below := range v {
			hidden[i] = c.hidden(below, each)
		}
		return hidden
	}
	if c.all {
		return mask.Hidden
	}
	return value
}

// secrets calls tell for each value at or below a path that is marked.
func (c secrecy) secrets(value any, path []string, tell func(any)) {
	marked(value, c.marks.at(path), tell)
}

func marked(value any, at marks, tell func(any)) {
	switch {
	case len(at) == 0:
		return
	case at.secret():
		tell(value)
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			marked(below, at.below(name), tell)
		}
	case []any:
		each := at.item()
		for _, below := range v {
			marked(below, each, tell)
		}
	}
}

// values returns a copy of values, with what is secret hidden.
func (c secrecy) values(all map[string]any) map[string]any {
	hidden, _ := c.of(all, nil).(map[string]any) // it is one, as it was before
	return hidden
}

// reveal puts what was set before in place of what was hidden. It is an error if nothing was set there.
func (c secrecy) reveal(edited, before any) (any, error) {
	return revealed(edited, before, c.marks, nil)
}

func revealed(edited, before any, at marks, path []string) (any, error) {
	switch v := edited.(type) {
	case string:
		if v != mask.Hidden || !at.secret() {
			return edited, nil
		}
		if before == nil {
			return nil, fmt.Errorf("%s: %s stands for a value that is set already, and none is: write the value", strings.Join(path, "."), mask.Hidden)
		}
		return before, nil
	case map[string]any:
		was, _ := before.(map[string]any)
		for name, below := range v {
			shown, err := revealed(below, was[name], at.below(name), append(path[:len(path):len(path)], name))
			if err != nil {
				return nil, err
			}
			v[name] = shown
		}
	case []any:
		was, _ := before.([]any)
		for i, below := range v {
			var old any
			if i < len(was) {
				old = was[i]
			}
			shown, err := revealed(below, old, at.item(), append(path[:len(path):len(path)], "[]"))
			if err != nil {
				return nil, err
			}
			v[i] = shown
		}
	}
	return edited, nil
}

// pair returns copies of two states of values with what is secret hidden, so that values that differ still do.
func (c secrecy) pair(old, next map[string]any) (was, is map[string]any) {
	was, is = c.values(old), c.values(next)
	tellApart(old, next, was, is)
	return was, is
}

// tellApart says of hidden values that differ which is which.
func tellApart(old, next, hiddenOld, hiddenNext map[string]any) {
	for name, value := range hiddenOld {
		below, isMap := value.(map[string]any)
		belowNext, isMapNext := hiddenNext[name].(map[string]any)
		if isMap && isMapNext {
			oldBelow, _ := old[name].(map[string]any)
			nextBelow, _ := next[name].(map[string]any)
			tellApart(oldBelow, nextBelow, below, belowNext)
			continue
		}
		if value == mask.Hidden && hiddenNext[name] == mask.Hidden && !reflect.DeepEqual(old[name], next[name]) {
			hiddenOld[name], hiddenNext[name] = mask.Before, mask.After
		}
	}
}

// text returns the values that an installation sets as they are edited: a block as it was written, unless something of it
// is secret.
func (c secrecy) text(inst *v1alpha1.ApplicationInstallation) (string, error) {
	own, err := install.OwnValues(inst)
	if err != nil {
		return "", err
	}
	hidden := c.values(own)
	if inst.Spec.ValuesBlock != "" && reflect.DeepEqual(own, hidden) {
		return inst.Spec.ValuesBlock, nil
	}
	if len(hidden) == 0 {
		return "", nil
	}
	text, err := yaml.Marshal(hidden)
	if err != nil {
		return "", fmt.Errorf("write values: %w", err)
	}
	return string(text), nil
}

// edit has an installation set the values of an edited text. One that says the same as before changes nothing. Comments are
// kept, as a block, unless the text stands for something secret.
func (c secrecy) edit(inst *v1alpha1.ApplicationInstallation, text string) error {
	text = strings.ReplaceAll(text, "\r\n", "\n") // as browsers send lines
	parsed, err := values.Parse([]byte(text))
	if err != nil {
		return fmt.Errorf("values: %w", err)
	}
	before, err := install.OwnValues(inst)
	if err != nil {
		return err
	}
	shown, err := c.text(inst)
	if err != nil {
		return err
	}
	if strings.TrimSpace(shown) == strings.TrimSpace(text) {
		return nil
	}
	untouched, err := json.Marshal(parsed)
	if err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	whole, err := c.reveal(parsed, before)
	if err != nil {
		return err
	}
	own, _ := whole.(map[string]any)
	again, err := json.Marshal(own)
	if err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	if string(untouched) == string(again) && strings.Contains(text, "#") && len(own) > 0 {
		inst.Spec.Values, inst.Spec.ValuesBlock = nil, text
		return nil
	}
	return install.SetValues(inst, own)
}

// schemaWithin is how long it may take to fetch a chart for its schema: a page is good without.
const schemaWithin = 8 * time.Second

// maxCompiled is how much of the schemas is kept that were compiled, in objects of a schema; the largest one has 5,000.
const maxCompiled = 40_000

// errNoSchema says that a version has no schema of its values.
var errNoSchema = errors.New("the chart has no values.schema.json")

// schemaOf returns the schema of the values of a version: the copy that waybill-sync has made of it, as far as the viewer may
// read that, else that of the chart itself. An error says why it is not known, errNoSchema that there is none.
func (s *server) schemaOf(ctx context.Context, at fleet.Place, definition *v1alpha1.ApplicationDefinition, version string) (*schema.Schema, error) {
	offered := definition.GetVersion(version)
	if offered == nil {
		return nil, fmt.Errorf("ApplicationDefinition %s has no version %s", definition.Name, version)
	}
	if entry := definition.GetValuesSchema(offered.Version); entry != nil && entry.Digest != "" {
		found, err := s.copiedSchema(ctx, at, definition.Name, entry.Digest)
		if err == nil || !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return found, err
		}
	}
	shared, err := s.sources.open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, schemaWithin)
	defer cancel()
	found, err := shared.Schema(ctx, definition, offered)
	if err == nil && found == nil {
		err = errNoSchema
	}
	return found, err
}

// copiedSchema reads the copy of a schema as the viewer. What was read before is not compiled again: that takes up to half a second.
func (s *server) copiedSchema(ctx context.Context, at fleet.Place, definition, digest string) (*schema.Schema, error) {
	c, err := at.Hub.Client()
	if err != nil {
		return nil, err
	}
	held := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: at.SystemNamespace, Name: schema.ConfigMapName(definition)}
	if err := c.Get(ctx, key, held); err != nil {
		return nil, fmt.Errorf("get the schema: %w", at.Hub.Explain(err))
	}
	encoded, err := schema.Unpack(held.BinaryData[digest], digest)
	if err != nil {
		return nil, err
	}
	if found, known := s.compiled.Lookup(digest); known {
		return found, nil
	}
	compiled, err := schema.Compile(encoded)
	if err != nil {
		return nil, err
	}
	s.compiled.Put(digest, compiled, int64(1+compiled.Weight))
	return compiled, nil
}

// secrecyOf returns what hides the secret values of a version. Where that is not known, a note says so.
func (s *server) secrecyOf(ctx context.Context, at fleet.Place, definition *v1alpha1.ApplicationDefinition, version string) secrecy {
	found, err := s.schemaOf(ctx, at, definition, version)
	if err != nil && !errors.Is(err, errNoSchema) {
		at.Warn("Values that the chart marks as secret are not hidden, as its schema cannot be read: %s", err)
	}
	return secrecyBy(found, schema.NewLooks())
}
