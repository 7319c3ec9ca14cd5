package webhooks

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

const (
	applicationSnapshotResource        = "applicationsnapshots"
	applicationSnapshotClassResource   = "applicationsnapshotclasses"
	applicationSnapshotContentResource = "applicationsnapshotcontents"
)

// applicationSnapshots are the rules of ApplicationSnapshot.
type applicationSnapshots struct {
	access *access
	data   *data
}

func (*applicationSnapshots) validate(obj, _ *v1alpha1.ApplicationSnapshot) (admission.Warnings, field.ErrorList) {
	return nil, validation.ValidateApplicationSnapshot(obj)
}

func (*applicationSnapshots) specChanged(obj, old *v1alpha1.ApplicationSnapshot) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (a *applicationSnapshots) review(ctx context.Context, obj, old *v1alpha1.ApplicationSnapshot) (admission.Warnings, error) {
	var wanted []need
	var warnings admission.Warnings
	var err error
	switch {
	case old != nil && obj.Spec.TTL == old.Spec.TTL: // what it is taken of, and how, is immutable
	case old != nil:
		wanted = []need{needs("spec.ttl deletes it", authorizationv1.ResourceAttributes{
			Verb: "delete", Group: v1alpha1.Group, Resource: applicationSnapshotResource, Namespace: obj.Namespace, Name: obj.Name,
		})}
	case obj.Spec.Source.Type == v1alpha1.SnapshotSourceApplication:
		var class *v1alpha1.ApplicationSnapshotClass
		if class, warnings, err = a.data.class(ctx, obj.Spec.SnapshotClassName); err == nil {
			wanted = needsQuiesce(obj.Namespace, class)
		}
	default:
		wanted, err = a.needsContent(ctx, obj)
	}
	if err != nil {
		return nil, err
	}
	return warnings, a.access.check(ctx, obj, applicationSnapshotResource, wanted)
}

// needsContent returns the right to bind to a content: none if its administrator has named this very
// ApplicationSnapshot in it.
func (a *applicationSnapshots) needsContent(ctx context.Context, obj *v1alpha1.ApplicationSnapshot) ([]need, error) {
	content := &v1alpha1.ApplicationSnapshotContent{}
	if _, err := a.data.find(ctx, client.ObjectKey{Name: obj.Spec.SnapshotContentName}, content); err != nil {
		return nil, err
	}
	if ref := content.Spec.SnapshotRef; ref != nil && ref.Namespace == obj.Namespace && ref.Name == obj.Name {
		return nil, nil
	}
	return []need{needs("spec.snapshotContentName gives the namespace what is in it", authorizationv1.ResourceAttributes{
		Verb: verbUse, Group: v1alpha1.Group, Resource: applicationSnapshotContentResource, Name: obj.Spec.SnapshotContentName,
	})}, nil
}

// applicationSnapshotClasses are the rules of ApplicationSnapshotClass.
type applicationSnapshotClasses struct {
	data *data
}

func (*applicationSnapshotClasses) validate(obj, _ *v1alpha1.ApplicationSnapshotClass) (admission.Warnings, field.ErrorList) {
	return nil, validation.ValidateApplicationSnapshotClass(obj)
}

// specChanged is about what is reviewed: being the default.
func (*applicationSnapshotClasses) specChanged(obj, old *v1alpha1.ApplicationSnapshotClass) bool {
	return obj.Annotations[v1alpha1.DefaultClassAnnotation] != old.Annotations[v1alpha1.DefaultClassAnnotation]
}

func (a *applicationSnapshotClasses) review(ctx context.Context, obj, _ *v1alpha1.ApplicationSnapshotClass) (admission.Warnings, error) {
	return a.data.defaultClasses(ctx, obj, &v1alpha1.ApplicationSnapshotClassList{})
}

// applicationSnapshotContents are the rules of ApplicationSnapshotContent. A user who may write one
// may have any snapshot's data bound to any namespace, and so is an administrator: no further right
// is required.
type applicationSnapshotContents struct{}

func (applicationSnapshotContents) validate(obj, _ *v1alpha1.ApplicationSnapshotContent) (admission.Warnings, field.ErrorList) {
	return nil, validation.ValidateApplicationSnapshotContent(obj)
}

func (applicationSnapshotContents) specChanged(_, _ *v1alpha1.ApplicationSnapshotContent) bool {
	return false
}

func (applicationSnapshotContents) review(context.Context, *v1alpha1.ApplicationSnapshotContent, *v1alpha1.ApplicationSnapshotContent) (admission.Warnings, error) {
	return nil, nil
}
