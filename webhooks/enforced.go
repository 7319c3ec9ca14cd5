package webhooks

import (
	"context"
	"errors"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

// concernsInstallation matches writes of installations that are not being deleted or whose spec changes, and
// deletions of what may be enforced: other deletions do not wait for us.
const concernsInstallation = `request.operation == "DELETE"` +
	` ? oldObject.metadata.?labels[?"` + v1alpha1.ProvidedLabel + `"] == optional.of("` + v1alpha1.ProvidedEnforced + `")` +
	` : (!has(object.metadata.deletionTimestamp) || (oldObject != null && object.?spec != oldObject.?spec))`

var _ guard[*v1alpha1.ApplicationInstallation] = &applicationInstallations{}

// enforced reports whether an installation is one that its definition enforces.
func (i *applicationInstallations) enforced(ctx context.Context, obj *v1alpha1.ApplicationInstallation) bool {
	if obj.Namespace != i.systemNamespace || obj.Labels[v1alpha1.ProvidedLabel] != v1alpha1.ProvidedEnforced {
		return false
	}
	def := i.definitions.peek(ctx, obj.Spec.ApplicationRef.Name)
	return def != nil && def.Spec.Enforced && def.Name == obj.Name
}

// reviewEnforced refuses a change of what is enforced to all users but the driver, which would undo it.
func (i *applicationInstallations) reviewEnforced(ctx context.Context, old *v1alpha1.ApplicationInstallation) error {
	if !i.enforced(ctx, old) {
		return nil
	}
	if !delivered(ctx) {
		return apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource(applicationInstallationResource).GroupResource(), old.Name, errEnforced)
	}
	return i.access.check(ctx, old, applicationInstallationResource, []need{needsEnforce(old)})
}

var errEnforced = errors.New("its ApplicationDefinition is enforced: the definition in the hub decides what is installed")

// needsEnforce returns the right to write what is enforced, which a driver holds in its user clusters.
func needsEnforce(obj *v1alpha1.ApplicationInstallation) need {
	return needs(errEnforced.Error(), authorizationv1.ResourceAttributes{
		Verb: verbEnforce, Group: v1alpha1.Group, Resource: applicationDefinitionResource, Name: obj.Spec.ApplicationRef.Name,
	})
}

func (*applicationInstallations) guardUpdate(_, _ *v1alpha1.ApplicationInstallation) field.ErrorList {
	return nil
}

// guardDelete prevents the deletion of what is enforced. Kubernetes itself may delete it, with its namespace. A
// permission that cannot be checked blocks nothing: what is deleted comes back.
func (i *applicationInstallations) guardDelete(ctx context.Context, old *v1alpha1.ApplicationInstallation) error {
	if !i.enforced(ctx, old) || fromControlPlane(ctx) {
		return nil
	}
	err := i.access.check(ctx, old, applicationInstallationResource, []need{needsEnforce(old)})
	if apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// fromControlPlane reports whether the request comes from a controller of Kubernetes, such as the one that empties a
// namespace.
func fromControlPlane(ctx context.Context) bool {
	req, err := admission.RequestFromContext(ctx)
	return err == nil && (req.UserInfo.Username == "system:kube-controller-manager" ||
		slices.Contains(req.UserInfo.Groups, "system:serviceaccounts:kube-system"))
}
