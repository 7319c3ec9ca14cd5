package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// syncPatience is how long a read waits for an informer that was only just started. It bounds how
// long a read can block a worker.
const syncPatience = 2 * time.Second

// cachedClient is a client that reads our own kinds from a cache and everything else, including
// Secrets, from the API server. So reading one Secret does not load all Secrets of a cluster into
// memory.
type cachedClient struct {
	client.Client
	cache cache.Cache
	kinds *kinds
	// lost returns why the cluster does not answer; nil while it does.
	lost func() error
}

// Get implements client.Reader.
func (c *cachedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	gvk, own := c.kinds.ownKind(obj)
	if !own {
		return c.Client.Get(ctx, key, obj, opts...)
	}
	if err := c.await(ctx, gvk); err != nil {
		return err
	}
	return c.cache.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (c *cachedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, own := c.kinds.ownKind(list)
	if !own {
		return c.Client.List(ctx, list, opts...)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if err := c.await(ctx, gvk); err != nil {
		return err
	}
	return c.cache.List(ctx, list, opts...)
}

// await returns nil once the informer of a kind is able to answer.
func (c *cachedClient) await(ctx context.Context, gvk schema.GroupVersionKind) error {
	informer, err := c.cache.GetInformerForKind(ctx, gvk, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("get informer of %s: %w", gvk.Kind, err)
	}
	if informer.HasSynced() {
		return nil
	}
	if err := c.lost(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("read %s: its informer has no answer yet", gvk.Kind)
	}
	return nil
}
