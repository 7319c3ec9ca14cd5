package restore

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"waybill.dev/waybill/api/v1alpha1"
)

// Options say what is made out of the definitions.
type Options struct {
	// Namespace that the objects are for.
	Namespace string
	// Application is the name of the Application that is made.
	Application string
	// Rules are applied in their order.
	Rules []v1alpha1.ValueSubstitutionRule
	// Install has an application that an ApplicationInstallation manages made as one; otherwise it is made
	// of plain objects, and sources of values lose the label that protects them.
	Install bool
	// StorageClasses are the names of those that the cluster has. StorageClassMapping says which takes
	// the place of one that it does not have.
	StorageClasses      []string
	StorageClassMapping map[string]string
}

// Claim is a PersistentVolumeClaim that is to be made.
type Claim struct {
	*unstructured.Unstructured
	// Source is the name of the claim in the snapshot.
	Source string
}

// Plan is what an application is made of, all of it in one namespace.
type Plan struct {
	// Claims are made first, in any order.
	Claims []Claim
	// Objects are made then, in this order.
	Objects []*unstructured.Unstructured
	// Last is made last: the Application, or the ApplicationInstallation that renders everything else.
	Last *unstructured.Unstructured
	// Rules says how often each rule applied.
	Rules []v1alpha1.RuleHits
}

// All returns all objects of the plan, in the order in which they are made.
func (p *Plan) All() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, c := range p.Claims {
		all = append(all, c.Unstructured)
	}
	return append(append(all, p.Objects...), p.Last)
}

// ErrNoApplication means that a snapshot holds no Application.
var ErrNoApplication = errors.New("the snapshot does not hold an Application")

// Make returns what is to be made out of the definitions of a snapshot, which are those of objects of
// one namespace. Errors name the rule, or the object, that is to be changed. The definitions stay as
// they are.
func Make(definitions []*unstructured.Unstructured, o Options) (*Plan, error) {
	rules, err := compile(o.Rules)
	if err != nil {
		return nil, err
	}
	var installed *installation
	if o.Install {
		installed = findInstallation(definitions)
	}
	objects, application := restorable(definitions, installed)
	if application == nil {
		return nil, ErrNoApplication
	}
	for _, r := range rules {
		for _, obj := range objects {
			if err := r.applyTo(obj, installed); err != nil {
				return nil, err
			}
		}
	}
	unprotect(objects, installed)
	if err := o.release(objects, application); err != nil {
		return nil, err
	}
	if err := mapStorageClasses(objects, o); err != nil {
		return nil, err
	}
	if err := o.place(objects, application, installed, rules); err != nil {
		return nil, err
	}
	return plan(objects, application, installed, rules), nil
}

// restorable returns the objects that can be created, and which of them is the Application: the first
// one. What delivers objects is left out, apart from the installation that is made again: GitSyncs and
// installations of the same would compete with those that there are.
func restorable(definitions []*unstructured.Unstructured, installed *installation) (objects []*object, application *object) {
	for _, definition := range definitions {
		o := newObject(definition)
		if o.is(applicationKind) && application == nil {
			application = o
		}
		if Generated(definition, definitions) == "" && (o.was.Group != v1alpha1.Group || o.is(applicationKind)) {
			objects = append(objects, o)
		}
	}
	if installed != nil {
		objects = append(objects, installed.object)
	}
	if application != nil {
		objects = slices.DeleteFunc(objects, func(o *object) bool { return o.was.Namespace != application.was.Namespace })
	}
	return objects, application
}

// unprotect takes off the label by which installations take values from objects: who made them here need
// not have the right to have anything installed. With the installation, objects keep it that had it in the
// snapshot, as was checked; no rule makes others such sources.
func unprotect(objects []*object, installed *installation) {
	for _, o := range objects {
		if installed != nil && o.labels[v1alpha1.ValuesLabel] == v1alpha1.ValuesProtected {
			continue
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "labels", v1alpha1.ValuesLabel)
	}
}

// applyTo applies a rule to an object. Hits in what an installation renders anew do not count.
func (r *rule) applyTo(o *object, installed *installation) error {
	before := r.hits
	err := r.apply(o)
	if err != nil || r.hits == before || !installed.renders(o.definition) || installed.keeps(o) {
		return err
	}
	r.hits = before
	return r.refuse(o, installed)
}

// apply applies a rule to an object, if it selects it.
func (r *rule) apply(o *object) error {
	if !r.selector.Matches(o.labels) {
		return nil
	}
	switch r.Type {
	case v1alpha1.SubstitutionValue:
		return nil // they are applied when all names are known
	case v1alpha1.SubstitutionName:
		return r.rename(o)
	case v1alpha1.SubstitutionLabel:
		return labelChange{r, o}.apply(o.Object, o.isClaim())
	case v1alpha1.SubstitutionAnnotation:
		return r.annotations(o.Object)
	default:
		return r.variables(o.Object)
	}
}

// release has the Application that an installation made select the objects of this application only:
// it selects by a label with the name of the installation.
func (o Options) release(objects []*object, application *object) error {
	selector := map[string]any{}
	if spec, ok := application.Object["spec"].(map[string]any); ok {
		selector, _ = spec["selector"].(map[string]any)
	}
	release, _, _ := unstructured.NestedString(selector, "matchLabels", v1alpha1.ReleaseLabel)
	if release == "" {
		return nil
	}
	rules, err := compile([]v1alpha1.ValueSubstitutionRule{{
		Type: v1alpha1.SubstitutionLabel, Key: v1alpha1.ReleaseLabel, OldValue: release, NewValue: o.Application, Match: v1alpha1.MatchExact,
	}})
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := rules[0].apply(obj); err != nil {
			return fmt.Errorf("spec.applicationName: label %s of %s cannot be %q: choose a shorter name", v1alpha1.ReleaseLabel, obj, o.Application)
		}
	}
	return nil
}

// place gives the objects their names and their namespace, and has all references follow.
func (o Options) place(objects []*object, application *object, installed *installation, rules []*rule) error {
	application.name, application.by = o.Application, field("spec.applicationName")
	nameClaims(objects)
	if installed != nil {
		if err := installed.nameAfter(o, application); err != nil {
			return err
		}
	}
	if err := checkNames(objects); err != nil {
		return err
	}
	refs := references{objects: objects, from: application.was.Namespace, to: o.Namespace}
	if err := refs.follow(); err != nil {
		return err
	}
	refs.applications()
	for _, obj := range objects {
		obj.SetName(obj.name)
		obj.SetNamespace(o.Namespace)
	}
	if installed == nil {
		return nil
	}
	installed.expect(objects)
	return installed.settle(o, refs, rules)
}

// plan sorts the objects as kustomize and kubectl create them.
func plan(objects []*object, application *object, installed *installation, rules []*rule) *Plan {
	p := &Plan{Last: application.Unstructured}
	if installed != nil {
		p.Last = installed.Unstructured
	}
	for _, o := range objects {
		rendered := installed.renders(o.definition)
		if rendered && installed.keeps(o) {
			installed.mark(o, p.Last.GetNamespace())
		}
		switch {
		case o.Unstructured == p.Last, rendered && !installed.keeps(o):
		case o.isClaim():
			p.Claims = append(p.Claims, Claim{o.Unstructured, o.was.Name})
		default:
			p.Objects = append(p.Objects, o.Unstructured)
		}
	}
	slices.SortStableFunc(p.Objects, func(a, b *unstructured.Unstructured) int {
		one, other := gvk(a), gvk(b)
		switch {
		case one.IsLessThan(other):
			return -1
		case other.IsLessThan(one):
			return 1
		default:
			return 0
		}
	})
	for _, r := range rules {
		p.Rules = append(p.Rules, v1alpha1.RuleHits{Rule: int32(r.index), Hits: r.hits})
	}
	return p
}

func gvk(o *unstructured.Unstructured) resid.Gvk {
	kind := o.GroupVersionKind()
	return resid.Gvk{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
}
