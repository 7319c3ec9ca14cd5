package webhooks

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

const applicationRollbackResource = "applicationrollbacks"

// concernsRollback matches writes of rollbacks that are not being deleted or whose spec changes, and deletions of those that
// are completed: other deletions do not wait for us.
const concernsRollback = `request.operation == "DELETE"` +
	` ? oldObject.?status.?phase == optional.of("` + string(v1alpha1.RollbackCompleted) + `")` +
	` : (!has(object.metadata.deletionTimestamp) || (oldObject != null && object.?spec != oldObject.?spec))`

// applicationRollbacks are the rules and the defaults of ApplicationRollback.
type applicationRollbacks struct {
	access *access
	data   *data
}

var _ defaults[*v1alpha1.ApplicationRollback] = &applicationRollbacks{}

var _ guard[*v1alpha1.ApplicationRollback] = &applicationRollbacks{}

// fill pins the snapshot that the source names.
func (a *applicationRollbacks) fill(ctx context.Context, obj, old *v1alpha1.ApplicationRollback) error {
	var before *v1alpha1.DataSource
	if old != nil {
		before = &old.Spec.Source
	}
	return a.data.pin(ctx, &obj.Spec.Source, before, obj.Namespace)
}

func (*applicationRollbacks) validate(obj, _ *v1alpha1.ApplicationRollback) (admission.Warnings, field.ErrorList) {
	return nil, validation.ValidateApplicationRollback(obj)
}

func (*applicationRollbacks) specChanged(obj, old *v1alpha1.ApplicationRollback) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (a *applicationRollbacks) review(ctx context.Context, obj, old *v1alpha1.ApplicationRollback) (admission.Warnings, error) {
	if old != nil {
		wanted, err := a.needsDecision(ctx, obj, old)
		if err != nil {
			return nil, err
		}
		return nil, a.access.check(ctx, obj, applicationRollbackResource, wanted)
	}
	source := &obj.Spec.Source
	if source.SnapshotRef == nil {
		return nil, nil
	}
	// Whether the snapshot exists is revealed only to users who may restore it.
	if err := a.access.check(ctx, obj, applicationRollbackResource, []need{needsRestore(*source.SnapshotRef, obj.Namespace)}); err != nil {
		return nil, err
	}
	in, refused, err := a.data.ready(ctx, source, obj.Namespace)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationRollbackKind).GroupKind(), obj.Name, field.ErrorList{refused})
	}
	class, warnings, err := a.data.class(ctx, obj.Spec.SnapshotClassName)
	if err != nil {
		return nil, err
	}
	wanted := needsRollback(obj.Namespace, in)
	wanted = append(wanted, needsQuiesce(obj.Namespace, class)...)
	wanted = append(wanted, needs("a snapshot of the state before is taken first", authorizationv1.ResourceAttributes{
		Verb: "create", Group: v1alpha1.Group, Resource: applicationSnapshotResource, Namespace: obj.Namespace,
	}))
	return warnings, a.access.check(ctx, obj, applicationRollbackResource, distinct(wanted))
}

func (*applicationRollbacks) guardUpdate(_, _ *v1alpha1.ApplicationRollback) field.ErrorList {
	return nil
}

// guardDelete asks for the rights to confirm a rollback that is completed: the volumes of before are deleted with it.
// Kubernetes itself may delete it, with its namespace. A permission that cannot be checked blocks no deletion.
func (a *applicationRollbacks) guardDelete(ctx context.Context, old *v1alpha1.ApplicationRollback) error {
	if old.Status.Phase != v1alpha1.RollbackCompleted || !old.DeletionTimestamp.IsZero() || fromControlPlane(ctx) {
		return nil
	}
	err := a.access.check(ctx, old, applicationRollbackResource, needsClaims(old.Namespace))
	if apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// needsDecision returns the rights that a decision takes: to undo is to roll back once more. Every
// other change of the spec decides when the volumes of before are deleted, or lets others put
// objects back.
func (a *applicationRollbacks) needsDecision(ctx context.Context, obj, old *v1alpha1.ApplicationRollback) ([]need, error) {
	if obj.Spec.Decision != v1alpha1.RollbackUndone || old.Spec.Decision == v1alpha1.RollbackUndone {
		return needsClaims(obj.Namespace), nil
	}
	var all *snapshotContents
	safety := v1alpha1.SnapshotReference{Name: old.Status.SafetySnapshot, UID: old.Status.SafetySnapshotUID}
	for _, ref := range []*v1alpha1.SnapshotReference{&safety, obj.Spec.Source.SnapshotRef} {
		if ref == nil || ref.Name == "" {
			continue
		}
		snapshot, err := a.data.snapshot(ctx, *ref, obj.Namespace)
		if err != nil {
			return nil, err
		}
		if snapshot == nil || !ref.Matches(snapshot.UID) {
			continue // another one of its name is not put back
		}
		more, err := a.data.contents(ctx, snapshot)
		if err != nil {
			return nil, err
		}
		all = all.with(more)
	}
	return needsRollback(obj.Namespace, all), nil
}

// needsRollback returns the rights to replace objects of some kinds, and the volumes of claims, while
// the workloads are scaled to zero.
func needsRollback(namespace string, in *snapshotContents) []need {
	wanted := needsObjects(namespace, in, "the rollback replaces it", "create", "update", "delete")
	wanted = append(wanted, needsClaims(namespace)...)
	return distinct(append(wanted, needsScale(namespace, "the rollback scales workloads to zero")...))
}

// needsClaims returns the rights to replace the volumes of claims.
func needsClaims(namespace string) []need {
	var wanted []need
	for _, verb := range []string{"create", "update", "delete"} {
		wanted = append(wanted, needs("the rollback replaces or deletes volumes", authorizationv1.ResourceAttributes{
			Verb: verb, Resource: "persistentvolumeclaims", Namespace: namespace,
		}))
	}
	return wanted
}
