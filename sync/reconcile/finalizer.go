package reconcile

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
)

// AddFinalizer adds our finalizer to obj, unless it has it already. Controllers call it before they
// create anything that has to be removed later, so that nothing is left behind. It
// changes only the finalizers, and fails if obj was modified since it was read. On success obj
// holds the stored object.
func AddFinalizer(ctx context.Context, c client.Client, obj client.Object) error {
	if controllerutil.ContainsFinalizer(obj, v1alpha1.Finalizer) {
		return nil
	}
	before := obj.DeepCopyObject().(client.Object)
	controllerutil.AddFinalizer(obj, v1alpha1.Finalizer)
	if err := c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add finalizer to %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// RemoveFinalizer removes our finalizer from obj, unless it is gone already. Controllers call it
// when nothing of theirs is left to be removed. It changes only the finalizers, and fails if obj
// was modified since it was read. It is not an error if obj is gone.
func RemoveFinalizer(ctx context.Context, c client.Client, obj client.Object) error {
	before := obj.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(obj, v1alpha1.Finalizer) {
		return nil
	}
	err := c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer from %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
