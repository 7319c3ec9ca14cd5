package adopt

import (
	"cmp"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/cmd/waybill/internal/application"
	"waybill.dev/waybill/sync/membership"
)

// what is the action for an object.
type what int

const (
	annotate   what = iota // it gets the annotation
	belongs                // it has the annotation
	leaveOut               // it stays as it is
	controlled             // it follows its controller (A70)
	conflict               // it belongs to another Application, or to none
)

// verdict is the action for an object, and the reason.
type verdict struct {
	candidate

	what what
	why  string
}

// rules are the inputs of a verdict besides the object.
type rules struct {
	name  string // of the Application
	named bool   // whether the kinds were named rather than found
	force bool   // whether to take over objects of others
}

// judge decides what to do with an object.
func (r rules) judge(c candidate) verdict {
	whose, annotated := c.object.Annotations[v1alpha1.ApplicationAnnotation]
	switch {
	case metav1.GetControllerOf(&c.object) != nil:
		return verdict{c, controlled, ""}
	case c.object.DeletionTimestamp != nil:
		return verdict{c, leaveOut, "it is being deleted"}
	case annotated && whose == r.name:
		return verdict{c, belongs, ""}
	case !r.named && c.GroupVersionKind.GroupKind() == schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return verdict{c, leaveOut, "it holds data: name the kind by --kind to have it"}
	case !annotated:
		return verdict{c, annotate, ""}
	case r.force:
		return verdict{c, annotate, "instead of " + quoted(whose)}
	case whose == "":
		return verdict{c, conflict, "its annotation says that it belongs to none"}
	}
	return verdict{c, conflict, "it belongs to Application " + whose}
}

func quoted(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

// plan is everything that is to be done.
type plan struct {
	// there is the Application as it is; nil if there is none.
	there *v1alpha1.Application
	// wanted is the Application as it should be.
	wanted   *v1alpha1.Application
	verdicts []verdict

	rules   rules
	members *membership.Application // of wanted
}

// of returns the verdicts with one action.
func (p *plan) of(w what) []verdict {
	var some []verdict
	for _, v := range p.verdicts {
		if v.what == w {
			some = append(some, v)
		}
	}
	return some
}

// newPlan completes the Application with a component for each object that becomes or is one. there
// is the existing Application of that name, if any; its selector cannot be changed (A33).
func newPlan(wanted, there *v1alpha1.Application, r rules, verdicts []verdict) (*plan, error) {
	p := &plan{there: there, wanted: wanted, verdicts: verdicts, rules: r}
	if there != nil && !apiequality.Semantic.DeepEqual(there.Spec.Selector, wanted.Spec.Selector) {
		return nil, fmt.Errorf("%s is there with the selector %s, which is immutable: choose another name, or delete it first (kubectl's --cascade=orphan keeps its components)",
			nameOf(there), metav1.FormatLabelSelector(there.Spec.Selector))
	}
	slices.SortFunc(p.verdicts, func(a, b verdict) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.object.Name, b.object.Name))
	})
	var err error
	if p.members, err = membership.Compile(wanted); err != nil {
		return nil, err
	}
	for _, v := range p.verdicts {
		gk := v.GroupVersionKind.GroupKind()
		if v.what != annotate && v.what != belongs || p.members.Lists(gk, v.object.Name) {
			continue
		}
		wanted.Spec.Components = append(wanted.Spec.Components, v1alpha1.ApplicationComponent{
			Group: v.Group, Version: v.Version, Kind: v.Kind, Name: v.object.Name,
		})
	}
	return p, validation.ValidateApplication(wanted, there).ToAggregate()
}

// writes reports whether the Application itself must be written.
func (p *plan) writes() bool {
	return p.there == nil || !apiequality.Semantic.DeepEqual(p.there.Spec, p.wanted.Spec)
}

// stillAnnotates reports whether a newer version of an object would get the same verdict.
func (p *plan) stillAnnotates(v verdict, newer *metav1.PartialObjectMetadata) bool {
	now := p.rules.judge(candidate{Resource: v.Resource, object: *newer})
	return newer.UID == v.object.UID && p.members.Selects(newer.Labels) && now.what == v.what && now.why == v.why
}

// nothing reports whether there is nothing to do.
func (p *plan) nothing() bool { return !p.writes() && len(p.of(annotate)) == 0 }

func nameOf(app *v1alpha1.Application) string {
	return application.Name(client.ObjectKeyFromObject(app))
}
