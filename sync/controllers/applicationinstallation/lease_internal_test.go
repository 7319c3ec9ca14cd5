package applicationinstallation

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/test/env"
)

// countedCache counts the event handlers that its informers have.
type countedCache struct {
	cache.Cache
	handlers *atomic.Int32
}

func (c countedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, obj, opts...)
	return countedInformer{informer, c.handlers}, err
}

type countedInformer struct {
	cache.Informer
	handlers *atomic.Int32
}

func (i countedInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handlers.Add(1)
	return i.Informer.AddEventHandlerWithOptions(h, o)
}

func (i countedInformer) RemoveEventHandler(r toolscache.ResourceEventHandlerRegistration) error {
	i.handlers.Add(-1)
	return i.Informer.RemoveEventHandler(r)
}

// The cache of the hub outlives the drivers of the hub, which come and go as it is paused and resumed:
// nothing of them stays in it.
func TestDriver_leavesNoHandlerInTheCache(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	config := env.Shared(t, env.Options{Name: "cluster", Pods: true, Audit: true, CRDs: []string{"../../../charts/waybill/crds"}}).RESTConfig()
	own, err := cache.New(config, cache.Options{Scheme: scheme})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- own.Start(t.Context()) }()
	t.Cleanup(func() { require.NoError(t, <-done) })
	handlers := &atomic.Int32{}
	local, err := cluster.NewLocal(t.Context(), config, countedCache{own, handlers}, scheme)
	require.NoError(t, err)

	ctx, pause := context.WithCancel(t.Context())
	d := &driver{cluster: local, waker: &reconcile.Waker[ctrl.Request]{}, waits: newWaits()}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	t.Cleanup(queue.ShutDown)
	for _, watch := range d.sources(ctx) {
		require.NoError(t, watch.Start(ctx, queue))
		if syncing, ok := watch.(source.SyncingSource); ok {
			require.NoError(t, syncing.WaitForSync(t.Context()))
		}
	}
	require.EqualValues(t, 2, handlers.Load(), "of what is reconciled, and of what waits for it")
	pause()
	require.Eventually(t, func() bool { return handlers.Load() == 0 }, env.Limit, time.Millisecond)
}
