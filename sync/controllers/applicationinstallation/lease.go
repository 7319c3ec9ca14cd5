package applicationinstallation

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leasedCache is a cache whose event handlers are removed when the context ends. A source.Kind never
// removes its own: it expects the cache to end with its controller, and that of the hub goes on.
type leasedCache struct {
	cache.Cache
	ctx context.Context
}

// GetInformer implements cache.Informers.
func (c leasedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, obj, opts...)
	if err != nil {
		return nil, err
	}
	return leasedInformer{informer, c.ctx}, nil
}

type leasedInformer struct {
	cache.Informer
	ctx context.Context
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i leasedInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := i.Informer.AddEventHandlerWithOptions(h, o)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(i.ctx, func() {
		_ = i.Informer.RemoveEventHandler(registration) // fails only where the informer has ended
	})
	return registration, nil
}
