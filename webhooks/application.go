package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/membership"
)

const applicationResource = "applications"

// everyResource stands for all resources of a group in a permission. It is not known yet which
// resource an unknown kind will have, so anything less than all would be a guess.
const everyResource = "*"

// maxUnknownGroups is how many groups with unknown kinds one Application may list.
const maxUnknownGroups = 20

// applications are the rules of Application.
type applications struct {
	access *access
	kinds  *kinds
	// dryRun tries health checks out; nil if that is not wanted.
	dryRun *podDryRun
	index  *membership.Index
}

func (a *applications) validate(obj, old *v1alpha1.Application) (admission.Warnings, field.ErrorList) {
	warnings := validation.ApplicationWarnings(obj)
	errs := validation.ValidateApplication(obj, old)
	if len(errs) == 0 {
		warnings = append(warnings, a.cycle(obj)...)
	}
	return warnings, errs
}

// cycle warns about dependencies that lead back to the Application. They are not an error: a user
// who creates two Applications that need each other cannot be asked for an order, and the
// controller reports the cycle as well.
func (a *applications) cycle(obj *v1alpha1.Application) admission.Warnings {
	cycle := a.index.Cycle(client.ObjectKeyFromObject(obj), obj.Spec.Dependencies)
	if cycle == nil {
		return nil
	}
	return admission.Warnings{"spec.dependencies form a cycle: " + strings.Join(cycle, " -> ")}
}

func (*applications) specChanged(obj, old *v1alpha1.Application) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (a *applications) review(ctx context.Context, obj, old *v1alpha1.Application) (admission.Warnings, error) {
	wanted, warnings, err := a.needs(obj)
	if err != nil {
		return nil, err
	}
	if err := a.access.check(ctx, obj, applicationResource, wanted); err != nil {
		return warnings, err
	}
	if a.dryRun == nil || obj.Spec.HealthCheck == nil || (old != nil && apiequality.Semantic.DeepEqual(obj.Spec.HealthCheck, old.Spec.HealthCheck)) {
		return warnings, nil
	}
	more, errs := a.dryRun.try(ctx, obj)
	warnings = append(warnings, more...)
	if len(errs) > 0 {
		return warnings, invalidApplication(obj, errs)
	}
	return warnings, nil
}

// needs returns the rights that an Application uses on behalf of its writer: it shows the
// objects of each kind, marks them with labels and annotations, owns them, so that they are deleted
// with the Application, and runs a Pod.
func (a *applications) needs(obj *v1alpha1.Application) (wanted []need, warnings admission.Warnings, err error) {
	unknown := map[string]bool{} // groups
	for _, gk := range validation.ComponentKinds(obj) {
		mapping, err := a.kinds.find(gk)
		switch {
		case meta.IsNoMatchError(err):
			warnings = append(warnings, fmt.Sprintf("kind %s is not known to the cluster: its components are missing until it is", gk))
			if !unknown[gk.Group] {
				unknown[gk.Group] = true
				wanted = append(wanted, componentNeeds(obj, gk.Group, everyResource, fmt.Sprintf(
					"kind %s is not known yet: create what defines it first, or get permission for its whole group", gk))...)
			}
		case err != nil:
			return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("cannot find the resource of kind %s, try again: %v", gk, err))
		case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			warnings = append(warnings, fmt.Sprintf("kind %s is cluster-scoped: an Application has components in its own namespace only", gk))
		default:
			wanted = append(wanted, componentNeeds(obj, gk.Group, mapping.Resource.Resource, "")...)
		}
	}
	if len(unknown) > maxUnknownGroups {
		return nil, nil, invalidApplication(obj, field.ErrorList{field.Forbidden(field.NewPath("spec", "components"), fmt.Sprintf(
			"%d groups have kinds that are not known to the cluster: create what defines them first; at most %d may be unknown",
			len(unknown), maxUnknownGroups))})
	}
	if obj.Spec.HealthCheck != nil {
		wanted = append(wanted, needs("spec.healthCheck runs one", authorizationv1.ResourceAttributes{
			Verb: "create", Resource: "pods", Namespace: obj.Namespace,
		}))
	}
	return wanted, warnings, nil
}

func invalidApplication(obj *v1alpha1.Application, errs field.ErrorList) error {
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind).GroupKind(), obj.Name, errs)
}

// componentNeeds returns the rights on the components of one kind. If because is empty, each right
// is explained by what the Application does with it.
func componentNeeds(obj *v1alpha1.Application, group, resource, because string) []need {
	uses := []struct{ verb, because string }{
		{"get", "the Application shows it"},
		{"list", "the Application shows it"},
		{"patch", "what belongs to the Application is marked as such"},
	}
	if obj.Spec.Ownership != v1alpha1.OwnershipObserve {
		uses = append(uses, struct{ verb, because string }{"delete", "it is deleted with an Application whose ownership is Own"})
	}
	wanted := make([]need, 0, len(uses))
	for _, use := range uses {
		wanted = append(wanted, needs(cmp.Or(because, use.because), authorizationv1.ResourceAttributes{
			Verb: use.verb, Group: group, Resource: resource, Namespace: obj.Namespace,
		}))
	}
	return wanted
}
