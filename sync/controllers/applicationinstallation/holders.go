package applicationinstallation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/deliver/hold"
)

// holders watches the ApplicationRollbacks and ApplicationSnapshots that hold installations, and enqueues these.
type holders struct {
	*driver
	waits                *waits
	rollbacks, snapshots *metadataWatch
}

func newHolders(ctx context.Context, d *driver) *holders {
	h := &holders{driver: d, waits: newWaits()}
	h.rollbacks = h.watchOf(ctx, v1alpha1.ApplicationRollbackKind, func(name string) string { return name })
	h.snapshots = h.watchOf(ctx, v1alpha1.ApplicationSnapshotKind, hold.BySnapshot)
	return h
}

// watchOf returns the watch of a kind; called gives its objects the names that they have as holders.
func (h *holders) watchOf(ctx context.Context, kind string, called func(name string) string) *metadataWatch {
	return &metadataWatch{ctx: ctx, cluster: h.cluster, kind: v1alpha1.GroupVersion.WithKind(kind), changed: func(o client.Object) {
		by := types.NamespacedName{Namespace: o.GetNamespace(), Name: called(o.GetName())}
		for _, name := range h.waits.of(awaited{holder: by}) {
			h.waker.Wake(ctrl.Request{NamespacedName: name})
		}
	}}
}

// seen has an installation enqueued when a holder changes, and returns the resource version that this has in the
// watch; empty if there is none. It returns false if that is not watched, or not yet.
func (h *holders) seen(ctx context.Context, installation, by types.NamespacedName) (version string, watched bool) {
	h.waits.set(installation, awaited{holder: by})
	w := h.rollbacks
	_, key := hold.Resource(by)
	if key != by {
		w = h.snapshots
	}
	if _, err := watch.Mapping(ctx, h.cluster.Mapper(), w.kind.GroupKind(), w.kind.Version); err != nil {
		if !meta.IsNoMatchError(err) {
			ctrl.LoggerFrom(ctx).V(1).Info("not watched", "error", fmt.Sprint(err))
		}
		return "", false
	}
	if known, err := w.watch(); err != nil || !known {
		return "", false
	}
	o := w.object()
	err := h.cluster.Cache().Get(ctx, key, o)
	return o.GetResourceVersion(), err == nil || apierrors.IsNotFound(err)
}

// leave ends that.
func (h *holders) leave(installation types.NamespacedName) { h.waits.set(installation) }
