package webhooks

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshots;applicationsnapshotcontents,verbs=get
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshotclasses;statefulapplicationclasses,verbs=get;list

// data looks up snapshots and classes. It asks the API server each time: they may just have been
// written, and decisions on rights must not be those of a moment ago.
type data struct {
	reader client.Reader
}

// find reads an object, and returns false if there is none.
func (d *data) find(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	switch err := d.reader.Get(ctx, key, into); {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, apierrors.NewServiceUnavailable(fmt.Sprintf("cannot look up %s, try again: %v", key, err))
	}
	return true, nil
}

// class returns an ApplicationSnapshotClass, or nil and a warning if there is none.
func (d *data) class(ctx context.Context, name string) (*v1alpha1.ApplicationSnapshotClass, admission.Warnings, error) {
	class := &v1alpha1.ApplicationSnapshotClass{}
	if found, err := d.find(ctx, client.ObjectKey{Name: name}, class); err != nil || found {
		return class, nil, err
	}
	return nil, admission.Warnings{fmt.Sprintf("ApplicationSnapshotClass %q does not exist: no snapshot is taken without it", name)}, nil
}

// snapshot returns the ApplicationSnapshot that a source names; nil if there is none.
func (d *data) snapshot(ctx context.Context, ref v1alpha1.SnapshotReference, namespace string) (*v1alpha1.ApplicationSnapshot, error) {
	snapshot := &v1alpha1.ApplicationSnapshot{}
	if found, err := d.find(ctx, snapshotKey(ref, namespace), snapshot); err != nil || !found {
		return nil, err
	}
	return snapshot, nil
}

func snapshotKey(ref v1alpha1.SnapshotReference, namespace string) client.ObjectKey {
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	return client.ObjectKey{Namespace: namespace, Name: ref.Name}
}

// snapshotContents is what a snapshot holds, as far as rights depend on it.
type snapshotContents struct {
	// kinds of the objects; empty if they are not recorded.
	kinds []schema.GroupResource
	// definition that is installed if it holds an ApplicationInstallation; empty for any.
	definition string
}

// with returns what two snapshots hold together; either may be nil.
func (s *snapshotContents) with(other *snapshotContents) *snapshotContents {
	switch {
	case s == nil:
		return other
	case other == nil:
		return s
	}
	both := &snapshotContents{kinds: slices.Concat(s.kinds, other.kinds)}
	if s.definition == other.definition {
		both.definition = s.definition
	}
	return both
}

// ready returns what a snapshot holds, and an error that says what to wait
// for if it cannot be restored: until it is ready, it is unknown which rights that takes.
func (d *data) ready(ctx context.Context, source *v1alpha1.DataSource, namespace string) (*snapshotContents, *field.Error, error) {
	path, ref := field.NewPath("spec", "source", "snapshotRef"), *source.SnapshotRef
	snapshot, err := d.snapshot(ctx, ref, namespace)
	if err != nil {
		return nil, nil, err
	}
	name := snapshotKey(ref, namespace).String()
	switch {
	case snapshot == nil:
		return nil, field.NotFound(path, name), nil
	case !ref.Matches(snapshot.UID):
		return nil, field.Invalid(path.Child("uid"), ref.UID, "the ApplicationSnapshot of that name is another one: remove uid to use it"), nil
	case !snapshot.DeletionTimestamp.IsZero():
		return nil, field.Invalid(path, name, "the ApplicationSnapshot is being deleted: name another one"), nil
	case snapshot.Status.Phase == v1alpha1.SnapshotFailed:
		return nil, field.Invalid(path, name, "the ApplicationSnapshot has failed: name another one"), nil
	case snapshot.Status.Phase != v1alpha1.SnapshotReady:
		return nil, field.Invalid(path, name, "the ApplicationSnapshot is not ready: wait until its condition Ready is True, and try again"), nil
	}
	in, err := d.contents(ctx, snapshot)
	if err == nil && in == nil {
		return nil, field.Invalid(path, name, fmt.Sprintf("the ApplicationSnapshot is not bound to its content %q: name another one",
			snapshot.Status.BoundSnapshotContentName)), nil
	}
	return in, nil, err
}

// contents returns what a snapshot holds; nil if it is not bound both ways.
func (d *data) contents(ctx context.Context, snapshot *v1alpha1.ApplicationSnapshot) (*snapshotContents, error) {
	content := &v1alpha1.ApplicationSnapshotContent{}
	found, err := d.find(ctx, client.ObjectKey{Name: snapshot.Status.BoundSnapshotContentName}, content)
	if err != nil || !found {
		return nil, err
	}
	ref := content.Spec.SnapshotRef
	if ref == nil || ref.Namespace != snapshot.Namespace || ref.Name != snapshot.Name || ref.UID != string(snapshot.UID) {
		return nil, nil //nolint:nilnil // as said above
	}
	in := &snapshotContents{definition: content.Status.Definition}
	for _, kind := range content.Status.Kinds {
		in.kinds = append(in.kinds, schema.ParseGroupResource(kind))
	}
	return in, nil
}

// pin fills in which snapshot a source names, so that it is the one that the rights of its writer were
// checked for. What was pinned before stays, also where the writer left it out.
func (d *data) pin(ctx context.Context, source, old *v1alpha1.DataSource, namespace string) error {
	if source == nil || source.SnapshotRef == nil {
		return nil
	}
	ref := source.SnapshotRef
	if old != nil && old.SnapshotRef != nil {
		before := *old.SnapshotRef
		same := snapshotKey(before, namespace) == snapshotKey(*ref, namespace)
		switch {
		case same && ref.UID == "":
			ref.UID = before.UID
			return nil
		case !same && ref.UID == before.UID:
			ref.UID = ""
		}
	}
	if ref.UID != "" {
		return nil
	}
	snapshot, err := d.snapshot(ctx, *ref, namespace)
	if err != nil || snapshot == nil {
		return err
	}
	ref.UID = string(snapshot.UID)
	return nil
}

// defaultClasses warns if a class that is to be the default is not the only one.
func (d *data) defaultClasses(ctx context.Context, obj client.Object, list client.ObjectList) (admission.Warnings, error) {
	if obj.GetAnnotations()[v1alpha1.DefaultClassAnnotation] != "true" {
		return nil, nil
	}
	others, err := d.defaults(ctx, list)
	if err != nil {
		return nil, err
	}
	var warnings admission.Warnings
	for _, name := range others {
		if name != obj.GetName() {
			warnings = append(warnings, fmt.Sprintf("class %q is a default class, too: take annotation %s from one of them",
				name, v1alpha1.DefaultClassAnnotation))
		}
	}
	return warnings, nil
}

// defaults returns the names of the default classes among those of list.
func (d *data) defaults(ctx context.Context, list client.ObjectList) ([]string, error) {
	if err := d.reader.List(ctx, list); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, apierrors.NewServiceUnavailable("cannot look up default classes, try again: " + err.Error())
	}
	var names []string
	return names, meta.EachListItem(list, func(o runtime.Object) error {
		if class, ok := o.(client.Object); ok && class.GetAnnotations()[v1alpha1.DefaultClassAnnotation] == "true" {
			names = append(names, class.GetName())
		}
		return nil
	})
}
