package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
)

// payload returns the JSON to apply. With a uid, the API server refuses it unless the live object has
// that uid. If fields of that are ignored, they are left to others, or applied as they are now. Then the
// object must not have changed since, or a concurrent change of these fields would be reverted.
func (r *run) payload(ctx context.Context, it *item, uid types.UID) ([]byte, error) {
	if uid == "" || it.ignored == nil {
		return it.payload(uid)
	}
	live, err := r.as(it.id).Dynamic().Resource(it.kind.gvr).Namespace(it.id.Namespace).Get(ctx, it.id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !watch.IsKindNotFound(err) {
		return nil, apierrors.NewConflict(it.kind.gvr.GroupResource(), it.id.Name, err)
	}
	if err != nil {
		return nil, err
	}
	body, repeats, err := it.ignored.ToApply(it.body, live, v1alpha1.FieldManager)
	if err != nil {
		return nil, err
	}
	known := map[string]any{"uid": string(uid)}
	if repeats {
		known["resourceVersion"] = live.GetResourceVersion()
	}
	return payloadFor(body, known)
}

// gaveUp reports whether an apply has changed nothing of what is ours, but at most left ignored fields to
// others. Its controller may have written the object meanwhile.
func (it *item) gaveUp(applied *live) bool {
	before := it.sight.live
	return it.sight.appliedAs(it.desired) && before.fields == applied.fields && before.owner == applied.owner
}

// maxRepeats is how often an object with ignored fields is read again: its controller may write its
// status all the time.
const maxRepeats = 10

// looks returns how often an object that others have written meanwhile is read again.
func (it *item) looks() int {
	if it.ignored != nil {
		return maxRepeats
	}
	return 1
}
