package kubernetescluster

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/watch"
)

// summaryDelay is how long changes of installations are gathered before the summary in the status
// is updated: a cluster that is being filled costs a write a second.
const summaryDelay = time.Second

// engagement is the state of this package for one cluster while it is engaged.
type engagement struct {
	cluster *cluster.Cluster
	// seed is true if the cluster is a seed.
	seed bool
	// synced reports whether the informer of installations, or of the definitions in a seed, knows them all.
	synced func() bool

	// share is what is known of Waybill's own share of the cluster; nil until that is asked for. Only passes
	// use it.
	share *share

	// err is that of the last try to engage.
	err atomic.Pointer[error]
}

func (e *engagement) failure() error { return ptr.Deref(e.err.Load(), nil) }

func (e *engagement) fail(err error) { e.err.Store(&err) }

// served takes note that a seed serves definitions: Waybill has been installed there since it was asked.
func (e *engagement) served() {
	last := e.err.Load()
	if missing := (*noWaybillError)(nil); errors.As(ptr.Deref(last, nil), &missing) {
		e.err.CompareAndSwap(last, nil)
	}
}

// engage is called when a cluster is engaged: it installs the CRDs and watches the installations.
// The hub gets its CRDs from the chart, whichever KubernetesCluster leads there. So does a seed, of which
// the definitions are watched, to know by what they are used.
func (r *Reconciler) engage(ctx context.Context, c *cluster.Cluster) error {
	if r.ConnectOnly {
		return nil
	}
	seed, failed := c.IsSeed(ctx, r.Client)
	if failed != nil {
		return failed
	}
	switch {
	case seed:
		failed = findWaybill(ctx, c)
	case c.UID() != r.Clusters.Local().UID():
		failed = installCRDs(ctx, c, r.crds)
	}
	e, err := r.begin(ctx, c, seed)
	if err != nil || ctx.Err() != nil {
		return cmp.Or(err, ctx.Err())
	}
	e.fail(failed)
	r.wake(c.Name())
	r.provider.Look(c.Name())
	return failed
}

// begin starts to watch the installations of a cluster, or the definitions in a seed, once per engagement.
func (r *Reconciler) begin(ctx context.Context, c *cluster.Cluster, seed bool) (*engagement, error) {
	if e := r.engagements.Get(c.Name()); e != nil && e.cluster == c {
		return e, nil
	}
	var watched client.Object = &v1alpha1.ApplicationInstallation{}
	if seed {
		watched = &v1alpha1.ApplicationDefinition{}
	}
	gather := func(any) { r.gather(c) }
	informer, registration, err := watch.Handle(ctx, c.Cache(), watched, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    gather,
		UpdateFunc: func(_, o any) { gather(o) },
		DeleteFunc: gather,
	})
	if err != nil {
		return nil, err
	}
	e := &engagement{cluster: c, seed: seed, synced: informer.HasSynced}
	r.engagements.Put(ctx, c.Name(), e)
	go func() {
		// Without an installation there is no event that says so.
		if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			e.served()
			r.gather(c)
		}
	}()
	return e, nil
}

// gather enqueues the KubernetesCluster after summaryDelay, once for all changes until then.
func (r *Reconciler) gather(c *cluster.Cluster) {
	r.waker.WakeAfter(ctrl.Request{NamespacedName: c.Name()}, summaryDelay)
}

func (r *Reconciler) wake(key types.NamespacedName) {
	r.waker.Wake(ctrl.Request{NamespacedName: key})
}
