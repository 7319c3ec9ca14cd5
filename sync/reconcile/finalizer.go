package reconcile

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
)

// AddFinalizer writes our finalizer to obj, unless it carries it. A controller does so before it
// makes anything that has to be taken away again, so that nothing is left behind (C11, K53). It
// changes nothing but the finalizers, and fails where somebody else has written obj since it was
// read. On success obj is as it was stored.
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
