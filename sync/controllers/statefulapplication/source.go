package statefulapplication

import (
	"context"
	"errors"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// source is what an application is restored from.
type source struct {
	content *v1alpha1.ApplicationSnapshotContent
	classes map[string]*storagev1.StorageClass
	// plan is what is created.
	plan *restore.Plan
	// volumes are those of the claims, by their names in the snapshot. A claim that was not snapshotted
	// has none. It is nil once all claims are created.
	volumes map[string]*volume
	// done gives back the memory that the plan takes; nil before there is one.
	done func()
}

// snapshotOf returns the name of the snapshot that an application is restored from.
func snapshotOf(obj *v1alpha1.StatefulApplication) types.NamespacedName {
	if obj.Spec.Source == nil || obj.Spec.Source.SnapshotRef == nil {
		return types.NamespacedName{}
	}
	ref := obj.Spec.Source.SnapshotRef
	if ref.Namespace == "" {
		return types.NamespacedName{Namespace: obj.Namespace, Name: ref.Name}
	}
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}

// load reads the snapshot, and works out what is to be made of it.
func (w *work) load(ctx context.Context) error {
	if err := w.findContent(ctx); err != nil {
		return w.giveUp(err)
	}
	if w.obj.Status.Restore == nil {
		// From now on the content is not deleted.
		w.obj.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestorePending, ContentName: w.content.Name}
		if err := w.pass.Write(ctx); err != nil {
			return fmt.Errorf("record phase %s: %w", v1alpha1.RestorePending, err)
		}
	}
	if w.content.Spec.MetadataHandle == nil {
		return w.giveUp(kernel.Stalled(v1alpha1.SnapshotDamagedReason, "ApplicationSnapshotContent %q has no spec.metadataHandle", w.content.Name))
	}
	definitions, done, err := w.Definitions.Borrow(ctx, w.obj.Namespace, *w.content.Spec.MetadataHandle)
	w.done = done
	switch {
	case errors.Is(err, metadata.ErrDamaged), errors.Is(err, metadata.ErrHandle), errors.Is(err, metadata.ErrNoDirectory):
		return w.giveUp(kernel.Stalled(v1alpha1.SnapshotDamagedReason, "ApplicationSnapshotContent %q cannot be restored: %w", w.content.Name, err))
	case err != nil:
		return fmt.Errorf("read definitions of ApplicationSnapshotContent %q: %w", w.content.Name, err)
	}
	if err := w.listClasses(ctx); err != nil {
		return err
	}
	if err := w.checkDefinition(definitions); err != nil {
		return w.giveUp(err)
	}
	w.plan, err = restore.Make(definitions, w.options())
	if errors.As(err, &restore.StorageClassError{}) {
		return kernel.Failed(v1alpha1.StorageClassNotFoundReason, "%w", err)
	}
	if errors.Is(err, restore.ErrNoApplication) {
		return w.giveUp(kernel.Stalled(v1alpha1.SnapshotDamagedReason, "ApplicationSnapshotContent %q cannot be restored: %w", w.content.Name, err))
	}
	if err != nil {
		return kernel.Stalled(v1alpha1.InvalidRulesReason, "%w", err)
	}
	return nil
}

// findContent finds the content that is restored: that of the snapshot or, once begun, the one that was
// recorded.
func (w *work) findContent(ctx context.Context) error {
	content := &v1alpha1.ApplicationSnapshotContent{}
	if begun(w.obj) {
		name := w.obj.Status.Restore.ContentName
		err := w.Reader.Get(ctx, types.NamespacedName{Name: name}, content)
		if apierrors.IsNotFound(err) {
			return kernel.Stalled(v1alpha1.SnapshotNotFoundReason, "ApplicationSnapshotContent %q was deleted", name)
		}
		w.content = content
		return withContext(err, "get ApplicationSnapshotContent %q", name)
	}
	key := snapshotOf(w.obj)
	snapshot := &v1alpha1.ApplicationSnapshot{}
	err := w.Reader.Get(ctx, key, snapshot)
	if apierrors.IsNotFound(err) {
		return kernel.Waiting(v1alpha1.SnapshotNotFoundReason, 0, "ApplicationSnapshot %q does not exist in namespace %q", key.Name, key.Namespace)
	}
	if err != nil {
		return fmt.Errorf("get ApplicationSnapshot %s: %w", key, err)
	}
	if !w.obj.Spec.Source.SnapshotRef.Matches(snapshot.UID) {
		return kernel.Stalled(v1alpha1.SnapshotNotFoundReason, "ApplicationSnapshot %s was replaced by another one: create another StatefulApplication", key)
	}
	if message, ok := ready(snapshot); !ok {
		if message != "" {
			return kernel.Stalled(v1alpha1.SnapshotNotReadyReason, "ApplicationSnapshot %s has failed: %s", key, message)
		}
		return kernel.Waiting(v1alpha1.SnapshotNotReadyReason, 0, "ApplicationSnapshot %s is not ready", key)
	}
	name := snapshot.Status.BoundSnapshotContentName
	err = w.Reader.Get(ctx, types.NamespacedName{Name: name}, content)
	if apierrors.IsNotFound(err) {
		return kernel.Failed(v1alpha1.SnapshotNotFoundReason, "ApplicationSnapshotContent %q of ApplicationSnapshot %s does not exist", name, key)
	}
	if err != nil {
		return fmt.Errorf("get ApplicationSnapshotContent %q: %w", name, err)
	}
	if ref := content.Spec.SnapshotRef; ref == nil || ref.Namespace != key.Namespace || ref.Name != key.Name || ref.UID != string(snapshot.UID) {
		return kernel.Failed(v1alpha1.SnapshotNotReadyReason, "ApplicationSnapshotContent %q is not bound to ApplicationSnapshot %s", name, key)
	}
	w.content = content
	return nil
}

func withContext(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// listClasses reads the StorageClasses of the cluster.
func (w *work) listClasses(ctx context.Context) error {
	all := &storagev1.StorageClassList{}
	if err := w.Reader.List(ctx, all); err != nil {
		return fmt.Errorf("list StorageClasses: %w", err)
	}
	w.classes = map[string]*storagev1.StorageClass{}
	for i := range all.Items {
		w.classes[all.Items[i].Name] = &all.Items[i]
	}
	return nil
}

func (w *work) options() restore.Options {
	o := restore.Options{
		Namespace: w.obj.Namespace, Application: w.obj.GetApplicationName(), Rules: w.obj.Spec.ValueSubstitutionRules,
		StorageClassMapping: w.class.StorageClassMapping, Install: restore.MayInstall(w.content),
	}
	for name := range w.classes {
		o.StorageClasses = append(o.StorageClasses, name)
	}
	return o
}
