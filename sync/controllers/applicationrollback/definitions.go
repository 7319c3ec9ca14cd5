package applicationrollback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// definitions are those of one snapshot, as they can be applied.
type definitions struct {
	content *v1alpha1.ApplicationSnapshotContent
	// objects are in the order in which they are applied. Claims and what is never applied are not among
	// them.
	objects []*unstructured.Unstructured
	claims  map[string]*corev1.PersistentVolumeClaim
	// installation is that which delivered the application; nil if there was none.
	installation *unstructured.Unstructured
	// workloads are those that ran, with their replicas.
	workloads []v1alpha1.ScaledWorkload
}

// source returns the definitions of the snapshot that the application is rolled back to.
func (s *scope) source(ctx context.Context) (*definitions, error) {
	content := &v1alpha1.ApplicationSnapshotContent{}
	err := s.Live.Get(ctx, client.ObjectKey{Name: s.obj.Status.ContentName}, content)
	if apierrors.IsNotFound(err) {
		return nil, kernel.Stalled(v1alpha1.RollbackErrorReason, "ApplicationSnapshotContent %q does not exist any more", s.obj.Status.ContentName)
	}
	if err != nil {
		return nil, fmt.Errorf("get ApplicationSnapshotContent %q: %w", s.obj.Status.ContentName, err)
	}
	return s.definitions(ctx, content)
}

// safety returns the definitions of the safety snapshot.
func (s *scope) safety(ctx context.Context) (*definitions, error) {
	snapshot := &v1alpha1.ApplicationSnapshot{}
	content := &v1alpha1.ApplicationSnapshotContent{}
	err := s.Live.Get(ctx, s.key(s.obj.Status.SafetySnapshot), snapshot)
	if err == nil {
		err = s.checkSafety(snapshot)
	}
	if err == nil {
		err = s.Live.Get(ctx, client.ObjectKey{Name: snapshot.Status.BoundSnapshotContentName}, content)
	}
	if apierrors.IsNotFound(err) {
		return nil, kernel.Stalled(v1alpha1.RollbackErrorReason, "safety snapshot: %w", err)
	}
	if kernel.IsStalled(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("get safety snapshot: %w", err)
	}
	return s.definitions(ctx, content)
}

func (s *scope) definitions(ctx context.Context, content *v1alpha1.ApplicationSnapshotContent) (*definitions, error) {
	if content.Spec.MetadataHandle == nil {
		return nil, kernel.Stalled(v1alpha1.RollbackErrorReason, "ApplicationSnapshotContent %q has no definitions", content.Name)
	}
	s.giveBack() // each step needs those of one snapshot
	all, done, err := s.Definitions.Borrow(ctx, s.obj.Namespace, *content.Spec.MetadataHandle)
	s.done = done
	if errors.Is(err, metadata.ErrDamaged) || errors.Is(err, metadata.ErrHandle) || errors.Is(err, metadata.ErrNoDirectory) {
		return nil, kernel.Stalled(v1alpha1.RollbackErrorReason, "ApplicationSnapshotContent %q: %w", content.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("ApplicationSnapshotContent %q: %w", content.Name, err) //nolint:staticcheck // a kind
	}
	d := &definitions{content: content, claims: map[string]*corev1.PersistentVolumeClaim{}}
	var found contents.Contents
	for _, o := range all {
		if o.GetNamespace() != s.obj.Namespace {
			return nil, kernel.Stalled(v1alpha1.RollbackErrorReason, "ApplicationSnapshotContent %q has %s %q of namespace %q, which is another one: restore it instead",
				content.Name, o.GetKind(), o.GetName(), o.GetNamespace())
		}
		if o.GetLabels()[v1alpha1.ValuesLabel] == v1alpha1.ValuesProtected && !restore.MayInstall(content) {
			return nil, kernel.Stalled(v1alpha1.RollbackErrorReason, "ApplicationSnapshotContent %q has %s %q, from which installations take values, and does not say so in status.kinds: take another snapshot",
				content.Name, o.GetKind(), o.GetName())
		}
		found.Objects = append(found.Objects, contents.Object{Unstructured: o})
		if err := d.add(o, all); err != nil {
			return nil, err
		}
	}
	d.workloads = scale.Workloads(&found)
	slices.SortStableFunc(d.objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	return d, nil
}

// giveBack ends the use of the definitions that were read last.
func (s *scope) giveBack() {
	if s.done != nil {
		s.done()
		s.done = nil
	}
}

// add sorts in one definition.
func (d *definitions) add(o *unstructured.Unstructured, all []*unstructured.Unstructured) error {
	kind := o.GroupVersionKind().GroupKind()
	if kind == installationKind {
		d.installation = o
	}
	clean := restore.Clean(o)
	annotations := clean.GetAnnotations()
	for _, key := range []string{v1alpha1.DeliveryAnnotation, v1alpha1.HeldByAnnotation, v1alpha1.RestoredByAnnotation} {
		delete(annotations, key)
	}
	clean.SetAnnotations(annotations)
	switch {
	case kind == claimKind:
		claim := &corev1.PersistentVolumeClaim{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(clean.Object, claim); err != nil {
			return kernel.Stalled(v1alpha1.RollbackErrorReason, "definition of PersistentVolumeClaim %q: %w", o.GetName(), err)
		}
		d.claims[claim.Name] = claim
	case isApplied(kind) && restore.Generated(o, all) == "":
		d.objects = append(d.objects, clean)
	}
	return nil
}

var (
	claimKind        = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	applicationKind  = v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind).GroupKind()
	installationKind = v1alpha1.GroupVersion.WithKind("ApplicationInstallation").GroupKind()
)

// isApplied reports whether objects of a kind are put back. A Job is not: what it did it would do again,
// to data that knows of it already. Neither are our own kinds but Application: they say what is wanted,
// and what a rollback does is to hold that off.
func isApplied(kind schema.GroupKind) bool {
	switch kind {
	case claimKind, schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Group: "batch", Kind: "Job"}:
		return false
	}
	return kind == applicationKind || kind.Group != v1alpha1.GroupVersion.Group
}

// rank orders definitions: what Pods use, then everything else, then workloads, and the Application last.
func rank(o *unstructured.Unstructured) int {
	switch kind := o.GroupVersionKind().GroupKind(); {
	case kind == applicationKind:
		return 4
	case kind.Group == "autoscaling":
		return 3
	case kind.Group == "apps" || kind.Group == "batch":
		return 2
	case kind.Group == "" && kind.Kind != "Service", kind.Group == "rbac.authorization.k8s.io" && kind.Kind == "Role":
		return 0
	}
	return 1
}

func refOf(o *unstructured.Unstructured) v1alpha1.ObjectReference {
	kind := o.GroupVersionKind()
	return v1alpha1.ObjectReference{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// object returns an empty object of a reference, in the version that the API server prefers.
func (s *scope) object(ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	mapping, err := s.Live.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(mapping.GroupVersionKind)
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	return o, nil
}
