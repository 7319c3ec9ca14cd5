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
	"waybill.dev/waybill/cmd/internal/application"
	"waybill.dev/waybill/sync/membership"
)

// action is what to do with an object.
type action int

const (
	annotate   action = iota // it gets the annotation
	belongs                  // it has the annotation
	leaveOut                 // it stays as it is
	controlled               // it follows its controller
	conflict                 // it belongs to another Application, or to none
)

// decision is the action for an object, and the reason.
type decision struct {
	candidate

	action action
	reason string
}

// rules are the inputs of a decision besides the object.
type rules struct {
	name  string // of the Application
	named bool   // whether the kinds were named rather than found
	force bool   // whether to take over objects of others
}

// decide decides what to do with an object.
func (r rules) decide(c candidate) decision {
	whose, annotated := c.object.Annotations[v1alpha1.ApplicationAnnotation]
	switch {
	case metav1.GetControllerOf(&c.object) != nil:
		return decision{c, controlled, ""}
	case c.object.DeletionTimestamp != nil:
		return decision{c, leaveOut, "it is being deleted"}
	case annotated && whose == r.name:
		return decision{c, belongs, ""}
	case !r.named && c.GroupVersionKind.GroupKind() == schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return decision{c, leaveOut, "it holds data: name the kind by --kind to have it"}
	case !annotated:
		return decision{c, annotate, ""}
	case r.force:
		return decision{c, annotate, "instead of " + quoted(whose)}
	case whose == "":
		return decision{c, conflict, "its annotation says that it belongs to none"}
	}
	return decision{c, conflict, "it belongs to Application " + whose}
}

func quoted(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

// plan is everything that is to be done.
type plan struct {
	// existing is the Application as it is; nil if there is none.
	existing *v1alpha1.Application
	// wanted is the Application as it should be.
	wanted    *v1alpha1.Application
	decisions []decision

	rules   rules
	members *membership.Application // of wanted
}

// of returns the decisions with one action.
func (p *plan) of(a action) []decision {
	var some []decision
	for _, v := range p.decisions {
		if v.action == a {
			some = append(some, v)
		}
	}
	return some
}

// newPlan completes the Application with a component for each object that becomes or is one.
// existing is the Application of that name, if there is one; its selector cannot be changed.
func newPlan(wanted, existing *v1alpha1.Application, r rules, decisions []decision) (*plan, error) {
	p := &plan{existing: existing, wanted: wanted, decisions: decisions, rules: r}
	if existing != nil && !apiequality.Semantic.DeepEqual(existing.Spec.Selector, wanted.Spec.Selector) {
		return nil, fmt.Errorf("%s is there with the selector %s, which is immutable: choose another name, or delete it first (kubectl's --cascade=orphan keeps its components)",
			nameOf(existing), metav1.FormatLabelSelector(existing.Spec.Selector))
	}
	slices.SortFunc(p.decisions, func(a, b decision) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.object.Name, b.object.Name))
	})
	var err error
	if p.members, err = membership.Compile(wanted); err != nil {
		return nil, err
	}
	for _, v := range p.decisions {
		gk := v.GroupVersionKind.GroupKind()
		if v.action != annotate && v.action != belongs || p.members.Lists(gk, v.object.Name) {
			continue
		}
		wanted.Spec.Components = append(wanted.Spec.Components, v1alpha1.ApplicationComponent{
			Group: v.Group, Version: v.Version, Kind: v.Kind, Name: v.object.Name,
		})
	}
	return p, validation.ValidateApplication(wanted, existing).ToAggregate()
}

// writes reports whether the Application itself must be written.
func (p *plan) writes() bool {
	return p.existing == nil || !apiequality.Semantic.DeepEqual(p.existing.Spec, p.wanted.Spec)
}

// decideAnew decides about a newer version of an object. One that the selector does not match, or that
// has only taken the name of another, is left out.
func (p *plan) decideAnew(v decision, newer *metav1.PartialObjectMetadata) decision {
	c := candidate{Resource: v.Resource, object: *newer}
	if newer.UID != v.object.UID || !p.members.Selects(newer.Labels) {
		return decision{c, leaveOut, ""}
	}
	return p.rules.decide(c)
}

// nothing reports whether there is nothing to do.
func (p *plan) nothing() bool { return !p.writes() && len(p.of(annotate)) == 0 }

func nameOf(app *v1alpha1.Application) string {
	return application.Name(client.ObjectKeyFromObject(app))
}
