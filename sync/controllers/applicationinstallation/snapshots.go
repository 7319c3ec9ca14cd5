package applicationinstallation

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// metadataWatch watches the metadata of all objects of a kind of ours in a cluster, from the first time on that
// somebody asks for it, until ctx ends, which is the engagement of the cluster. changed is called for each.
type metadataWatch struct {
	ctx     context.Context
	cluster cached
	kind    string
	changed func(client.Object)

	mu      sync.Mutex
	started cache.Informer
}

// cached is a cluster, as far as it is watched.
type cached interface{ Cache() cache.Cache }

// watch reports whether all of them are known. As long as they are not, which may be for the lack of a right to
// watch them, nobody is told of changes.
func (w *metadataWatch) watch() (known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started != nil {
		return w.started.HasSynced(), nil
	}
	informer, err := w.cluster.Cache().GetInformer(w.ctx, w.object(), cache.BlockUntilSynced(false))
	if err != nil {
		return false, fmt.Errorf("watch %ss: %w", w.kind, err)
	}
	registration, err := informer.AddEventHandler(handle(always, w.changed))
	if err != nil {
		return false, fmt.Errorf("watch %ss: %w", w.kind, err)
	}
	// Removing the handler fails only if the informer has ended.
	context.AfterFunc(w.ctx, func() { _ = informer.RemoveEventHandler(registration) })
	w.started = informer
	return informer.HasSynced(), nil
}

func (w *metadataWatch) object() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(w.kind))
	return object
}
