package applicationinstallation

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/sync/cluster/watch"
)

// metadataWatch watches the metadata of all objects of a kind in a cluster, from the first call of watch on,
// until ctx ends, which is the engagement of the cluster.
type metadataWatch struct {
	ctx     context.Context
	cluster cached
	kind    schema.GroupVersionKind
	// changed is called for each object.
	changed func(client.Object)
	// filled is called when all objects are known, if they were not at the first call of watch; it may be nil.
	filled func()

	mu      sync.Mutex
	started cache.Informer
}

// cached is a cluster, as far as it is watched.
type cached interface{ Cache() cache.Cache }

// watch reports whether all objects are known. It does not wait for that: without the permission to watch
// them, it would wait forever.
func (w *metadataWatch) watch() (known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started != nil {
		return w.started.HasSynced(), nil
	}
	informer, _, err := watch.Handle(w.ctx, w.cluster.Cache(), w.object(), watch.Changes(always, w.changed))
	if err != nil {
		return false, err
	}
	w.started = informer
	if informer.HasSynced() {
		return true, nil
	}
	if w.filled != nil {
		go w.awaitFilled(informer)
	}
	return false, nil
}

func (w *metadataWatch) awaitFilled(informer cache.Informer) {
	if toolscache.WaitForCacheSync(w.ctx.Done(), informer.HasSynced) {
		w.filled()
	}
}

func (w *metadataWatch) object() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(w.kind)
	return object
}
