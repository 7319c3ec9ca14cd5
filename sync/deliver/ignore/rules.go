package ignore

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
)

// maxRules is how many rules a spec may have.
const maxRules = 50

// Rules say which fields of which objects are ignored. Nil ignores nothing. They may be shared.
type Rules struct {
	rules []rule
	// known has what sets of rules name together, by a bit for each rule: most objects have one of a few.
	known keyed.Map[uint64, *Pointers]
}

type rule struct {
	target              *types.SelectorRegex
	labels, annotations labels.Selector
	pointers            []pointer
}

// Pointers name fields of one object. Nil names none. They are not changed.
type Pointers struct {
	list   []pointer
	digest string
}

// pointer is a JSON pointer: the keys, and the numbers of list items, on the way to a field.
type pointer []string

// Compile returns the rules of a spec; nil for none. An error says which entry is wrong.
func Compile(list []v1alpha1.IgnoredDifference) (*Rules, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if len(list) > maxRules {
		return nil, fmt.Errorf("spec.ignoreDifferences: must have at most %d items", maxRules)
	}
	compiled := &Rules{}
	for i, ignored := range list {
		one, err := compile(ignored)
		if err != nil {
			return nil, fmt.Errorf("spec.ignoreDifferences[%d]: %w", i, err)
		}
		compiled.rules = append(compiled.rules, one)
	}
	return compiled, nil
}

// onceOnly names what a delivery writes when it creates an object, and never again: the controller of
// KubernetesClusters takes away each entry of that list that it has carried out.
var onceOnly = v1alpha1.IgnoredDifference{
	Target: &v1alpha1.DifferenceTarget{
		Group: v1alpha1.Group, Kind: v1alpha1.KubernetesClusterKind, AnnotationSelector: v1alpha1.InitialInstallationsAnnotation,
	},
	JSONPointers: []string{"/metadata/annotations/" + escape.Replace(v1alpha1.InitialInstallationsAnnotation)},
}

// CompileForSync returns the rules of a GitSync: those of its spec, and what is written once only.
func CompileForSync(list []v1alpha1.IgnoredDifference) (*Rules, error) {
	compiled, err := Compile(list)
	if err != nil {
		return nil, err
	}
	once, err := compile(onceOnly)
	if err != nil {
		return nil, err
	}
	if compiled == nil {
		compiled = &Rules{}
	}
	compiled.rules = append(compiled.rules, once)
	return compiled, nil
}

func compile(ignored v1alpha1.IgnoredDifference) (rule, error) {
	target := v1alpha1.DifferenceTarget{}
	if ignored.Target != nil {
		target = *ignored.Target
	}
	one := rule{}
	var err error
	one.target, err = types.NewSelectorRegex(&types.Selector{ResId: resid.ResId{
		Gvk:  resid.Gvk{Group: target.Group, Version: target.Version, Kind: target.Kind},
		Name: target.Name, Namespace: target.Namespace,
	}})
	if err != nil {
		return one, fmt.Errorf("target: %w", err)
	}
	if one.labels, err = labels.Parse(target.LabelSelector); err != nil {
		return one, fmt.Errorf("target.labelSelector: %w", err)
	}
	if one.annotations, err = labels.Parse(target.AnnotationSelector); err != nil {
		return one, fmt.Errorf("target.annotationSelector: %w", err)
	}
	for _, text := range ignored.JSONPointers {
		p, err := parse(text)
		if err != nil {
			return one, err
		}
		one.pointers = append(one.pointers, p)
	}
	return one, nil
}

// unescape gives the parts of a JSON pointer their meaning, and escape makes a key one of them.
var (
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
)

func parse(text string) (pointer, error) {
	rest, absolute := strings.CutPrefix(text, "/")
	if !absolute {
		return nil, fmt.Errorf("jsonPointers: %q does not begin with /", text)
	}
	p := pointer(strings.Split(rest, "/"))
	for i := range p {
		p[i] = unescape.Replace(p[i])
	}
	return p, nil
}

// Of returns which fields of an object are ignored, by what its source says of it. The namespace is the
// one that it is written to.
func (r *Rules) Of(object *unstructured.Unstructured, namespace string) *Pointers {
	if r == nil {
		return nil
	}
	var set uint64
	for i, one := range r.rules {
		if one.matches(object, namespace) {
			set |= 1 << i
		}
	}
	if set == 0 {
		return nil
	}
	return r.known.Of(set, func() *Pointers { return r.join(set) })
}

// join returns what a set of rules names.
func (r *Rules) join(set uint64) *Pointers {
	p := &Pointers{}
	for i, one := range r.rules {
		if set&(1<<i) != 0 {
			p.list = append(p.list, one.pointers...)
		}
	}
	slices.SortFunc(p.list, compare)
	p.list = slices.CompactFunc(p.list, func(a, b pointer) bool { return slices.Equal(a, b) })
	digest := sha256.New()
	for _, one := range p.list {
		fmt.Fprintf(digest, "%q\n", []string(one))
	}
	p.digest = string(digest.Sum(nil)[:16])
	return p
}

// compare orders pointers so that what one of them removes does not change what those after it name: of
// list items, the last comes first, and what is in an item before the item.
func compare(a, b pointer) int {
	for i := range min(len(a), len(b)) {
		m, errA := strconv.Atoi(a[i])
		n, errB := strconv.Atoi(b[i])
		if errA == nil && errB == nil && m != n {
			return n - m
		}
		if c := strings.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return len(b) - len(a)
}

func (r rule) matches(object *unstructured.Unstructured, namespace string) bool {
	gvk := object.GroupVersionKind()
	return r.target.MatchGvk(resid.Gvk{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}) &&
		r.target.MatchName(object.GetName()) && r.target.MatchNamespace(namespace) &&
		(r.labels.Empty() || r.labels.Matches(labels.Set(object.GetLabels()))) &&
		(r.annotations.Empty() || r.annotations.Matches(labels.Set(object.GetAnnotations())))
}

// Digest identifies the fields, whatever the order in which rules name them; empty for none.
func (p *Pointers) Digest() string {
	if p == nil {
		return ""
	}
	return p.digest
}
