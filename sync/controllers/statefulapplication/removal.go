package statefulapplication

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// staticName returns the name of what leads to the snapshot of a claim's volume from another
// namespace.
func staticName(obj *v1alpha1.StatefulApplication, claim string) string {
	sum := sha256.Sum256([]byte(claim))
	return "restore-" + string(obj.UID) + "-" + hex.EncodeToString(sum[:5])
}

// remove removes what a restore has created that did not complete. A restored application stays.
func (r *Reconciler) remove(ctx context.Context, pass *kernel.Pass, obj *v1alpha1.StatefulApplication) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(obj, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	if begun(obj) || failed(obj) {
		if err := r.removeCreated(ctx, obj); err != nil {
			return pass.Finish(ctx, kernel.Outcome{}, kernel.Failed(v1alpha1.DeleteFailedReason, "%w", err))
		}
	}
	return ctrl.Result{}, kernel.RemoveFinalizer(ctx, r.Client, obj)
}

// removeCreated deletes what was created, the last one first.
func (r *Reconciler) removeCreated(ctx context.Context, obj *v1alpha1.StatefulApplication) error {
	for _, ref := range slices.Backward(obj.Status.Restore.Inventory) {
		mapping, err := r.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("find kind %s: %w", ref.Kind, err)
		}
		o := &object{}
		o.SetGroupVersionKind(mapping.GroupVersionKind)
		o.SetNamespace(ref.Namespace)
		o.SetName(ref.Name)
		if err := r.removeOne(ctx, obj, o); err != nil {
			return err
		}
	}
	return r.removeStatics(ctx, obj)
}

// removeStatics deletes what leads to the snapshots from another namespace.
func (r *Reconciler) removeStatics(ctx context.Context, obj *v1alpha1.StatefulApplication) error {
	if key := snapshotOf(obj); key.Namespace == obj.Namespace {
		return nil
	}
	for _, ref := range obj.Status.Restore.Inventory {
		if ref.Kind != "PersistentVolumeClaim" || ref.Group != "" {
			continue
		}
		name := staticName(obj, ref.Name)
		for _, o := range []*object{static("VolumeSnapshot", obj.Namespace, name), static("VolumeSnapshotContent", "", name)} {
			if err := r.removeOne(ctx, obj, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeOne deletes an object, if it was created for the application.
func (r *Reconciler) removeOne(ctx context.Context, obj *v1alpha1.StatefulApplication, o *object) error {
	live, err := r.find(ctx, o)
	if err != nil {
		return fmt.Errorf("get %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if live == nil || !made(live, obj) {
		return nil
	}
	err = r.Client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// exist says in words that objects exist.
func exist(names []string) string {
	if len(names) == 1 {
		return names[0] + " exists"
	}
	return excerpt.Names(names, maxNames) + " exist"
}
