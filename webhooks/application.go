package webhooks

import (
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

// applications are the rules of Application.
type applications struct {
	access *access
	mapper meta.RESTMapper
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

// cycle warns of dependencies that lead back to the Application. They are no error: who creates
// two that need each other cannot be asked for an order, and the controller tells of it as well.
func (a *applications) cycle(obj *v1alpha1.Application) admission.Warnings {
	cycle := a.index.Cycle(client.ObjectKeyFromObject(obj), obj.Spec.Dependencies)
	if cycle == nil {
		return nil
	}
	return admission.Warnings{"spec.dependencies make a cycle: " + strings.Join(cycle, " -> ")}
}

func (*applications) specChanged(obj, old *v1alpha1.Application) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (a *applications) review(ctx context.Context, obj, old *v1alpha1.Application) (admission.Warnings, error) {
	wanted, warnings, err := a.needs(obj)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable("cannot look kinds up, try again: " + err.Error())
	}
	if err := a.access.check(ctx, obj, applicationResource, wanted); err != nil {
		return warnings, err
	}
	if obj.Spec.HealthCheck == nil || (old != nil && apiequality.Semantic.DeepEqual(obj.Spec.HealthCheck, old.Spec.HealthCheck)) {
		return warnings, nil
	}
	more, errs := a.dryRun.try(ctx, obj)
	warnings = append(warnings, more...)
	if len(errs) > 0 {
		return warnings, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind).GroupKind(), obj.Name, errs)
	}
	return warnings, nil
}

// needs are the rights that an Application uses on behalf of its writer (C35): it shows what
// there is of each kind, owns it, so that it is deleted with the Application, and runs a Pod.
func (a *applications) needs(obj *v1alpha1.Application) (wanted []need, warnings admission.Warnings, err error) {
	verbs := map[string]string{"get": "the Application shows it", "list": "the Application shows it"}
	if obj.Spec.Ownership != v1alpha1.OwnershipObserve {
		verbs["delete"] = "it is deleted with an Application whose ownership is Own"
	}
	for _, gk := range validation.ComponentKinds(obj) {
		mapping, err := a.mapper.RESTMapping(gk)
		if meta.IsNoMatchError(err) {
			warnings = append(warnings, fmt.Sprintf("kind %s is not known to the cluster: its components are missing until it is", gk))
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("find resource of kind %s: %w", gk, err)
		}
		if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			warnings = append(warnings, fmt.Sprintf("kind %s is cluster-scoped: an Application has components in its own namespace only", gk))
			continue
		}
		for _, verb := range []string{"get", "list", "delete"} {
			if because, ok := verbs[verb]; ok {
				wanted = append(wanted, needs(because, authorizationv1.ResourceAttributes{
					Verb: verb, Group: gk.Group, Resource: mapping.Resource.Resource, Namespace: obj.Namespace,
				}))
			}
		}
	}
	if obj.Spec.HealthCheck != nil {
		wanted = append(wanted, needs("spec.healthCheck runs one", authorizationv1.ResourceAttributes{
			Verb: "create", Resource: "pods", Namespace: obj.Namespace,
		}))
	}
	return wanted, warnings, nil
}
