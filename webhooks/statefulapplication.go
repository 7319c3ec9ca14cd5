package webhooks

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

const (
	statefulApplicationResource      = "statefulapplications"
	statefulApplicationClassResource = "statefulapplicationclasses"
)

// statefulApplications are the rules and the defaults of StatefulApplication.
type statefulApplications struct {
	access *access
	data   *data
}

var _ defaults[*v1alpha1.StatefulApplication] = &statefulApplications{}

// fill pins the snapshot that the source names.
func (s *statefulApplications) fill(ctx context.Context, obj, old *v1alpha1.StatefulApplication) error {
	var before *v1alpha1.DataSource
	if old != nil {
		before = old.Spec.Source
	}
	return s.data.pin(ctx, obj.Spec.Source, before, obj.Namespace)
}

func (*statefulApplications) validate(obj, _ *v1alpha1.StatefulApplication) (admission.Warnings, field.ErrorList) {
	return nil, validation.ValidateStatefulApplication(obj)
}

func (*statefulApplications) specChanged(obj, old *v1alpha1.StatefulApplication) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (s *statefulApplications) review(ctx context.Context, obj, old *v1alpha1.StatefulApplication) (admission.Warnings, error) {
	source := obj.Spec.Source
	if source == nil || source.SnapshotRef == nil {
		return nil, nil
	}
	warnings, err := s.reviewClass(ctx, obj)
	if err != nil || old != nil && apiequality.Semantic.DeepEqual(source, old.Spec.Source) &&
		apiequality.Semantic.DeepEqual(obj.Spec.ValueSubstitutionRules, old.Spec.ValueSubstitutionRules) {
		return warnings, err
	}
	// Whether the snapshot exists is revealed only to users who may restore it.
	if err := s.access.check(ctx, obj, statefulApplicationResource, []need{needsRestore(*source.SnapshotRef, obj.Namespace)}); err != nil {
		return nil, err
	}
	in, refused, err := s.data.ready(ctx, source, obj.Namespace)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.StatefulApplicationKind).GroupKind(), obj.Name, field.ErrorList{refused})
	}
	return warnings, s.access.check(ctx, obj, statefulApplicationResource, needsObjects(obj.Namespace, in, "the snapshot holds it", "create"))
}

// reviewClass warns if there is no class to restore the application with.
func (s *statefulApplications) reviewClass(ctx context.Context, obj *v1alpha1.StatefulApplication) (admission.Warnings, error) {
	if name := obj.Spec.ApplicationClassName; name != "" {
		found, err := s.data.find(ctx, client.ObjectKey{Name: name}, &v1alpha1.StatefulApplicationClass{})
		if err != nil || found {
			return nil, err
		}
		return admission.Warnings{fmt.Sprintf("StatefulApplicationClass %q does not exist: nothing is restored without it", name)}, nil
	}
	names, err := s.data.defaults(ctx, &v1alpha1.StatefulApplicationClassList{})
	if err != nil || len(names) > 0 {
		return nil, err
	}
	return admission.Warnings{"no StatefulApplicationClass is the default one: name one in spec.applicationClassName"}, nil
}

// statefulApplicationClasses are the rules of StatefulApplicationClass.
type statefulApplicationClasses struct {
	data *data
}

func (*statefulApplicationClasses) validate(obj, _ *v1alpha1.StatefulApplicationClass) (admission.Warnings, field.ErrorList) {
	return nil, validation.ValidateStatefulApplicationClass(obj)
}

// specChanged is about what is reviewed: being the default.
func (*statefulApplicationClasses) specChanged(obj, old *v1alpha1.StatefulApplicationClass) bool {
	return obj.Annotations[v1alpha1.DefaultClassAnnotation] != old.Annotations[v1alpha1.DefaultClassAnnotation]
}

func (s *statefulApplicationClasses) review(ctx context.Context, obj, _ *v1alpha1.StatefulApplicationClass) (admission.Warnings, error) {
	return s.data.defaultClasses(ctx, obj, &v1alpha1.StatefulApplicationClassList{})
}
