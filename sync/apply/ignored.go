package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/watch"
)

// payload returns the JSON to apply. With a uid, the API server refuses it unless the live object has
// that uid. If fields of that are ignored, they are left to others, or applied as they are now; so the
// object must not have changed since, or what somebody sets at this very moment would be set back.
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
	body, err := it.ignored.ToApply(it.body, live, v1alpha1.FieldManager)
	if err != nil {
		return nil, err
	}
	return payloadFor(body, map[string]any{"uid": string(uid), "resourceVersion": live.GetResourceVersion()})
}

// looks returns how often an object is looked at again that others have written meanwhile. An object with
// ignored fields is written as it was seen, which those others may do all the time.
func (it *item) looks() int {
	if it.ignored != nil {
		return maxLooks
	}
	return 1
}
