package applicationinstallation

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// snapshots watches the metadata of the ApplicationSnapshots of a cluster, from the first upgrade on that
// waits for one, until ctx ends, which is the engagement of the cluster.
type snapshots struct {
	ctx context.Context

	mu      sync.Mutex
	started cache.Informer
}

// watch reports whether all of them are known. As long as they are not, which may be for the lack of a right to
// watch them, nobody is woken.
func (w *snapshots) watch(d *driver) (known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started != nil {
		return w.started.HasSynced(), nil
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationSnapshotKind))
	informer, err := d.cluster.Cache().GetInformer(w.ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return false, fmt.Errorf("watch ApplicationSnapshots: %w", err)
	}
	registration, err := informer.AddEventHandler(handle(always, func(o client.Object) {
		for _, name := range d.waits.of(awaited{snapshot: client.ObjectKeyFromObject(o)}) {
			d.waker.Wake(ctrl.Request{NamespacedName: name})
		}
	}))
	if err != nil {
		return false, fmt.Errorf("watch ApplicationSnapshots: %w", err)
	}
	// Removing the handler fails only if the informer has ended.
	context.AfterFunc(w.ctx, func() { _ = informer.RemoveEventHandler(registration) })
	w.started = informer
	return informer.HasSynced(), nil
}
