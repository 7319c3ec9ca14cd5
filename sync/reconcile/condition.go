package reconcile

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// WriteConditions writes what change makes of the conditions of obj, which was read from a cache and whose
// status is another controller's. The conditions are one list, so that a write may bring an older state of
// those of others back, or take that of this one away. It fails with a conflict rather than do the former;
// of the latter the caller has to notice by its watch, and write again. It writes nothing if nothing has
// changed.
func WriteConditions(ctx context.Context, c client.Client, obj Object, change func()) error {
	before := obj.DeepCopyObject().(Object)
	change()
	foldMessages(before, obj)
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, obj, patch, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("write status of %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
