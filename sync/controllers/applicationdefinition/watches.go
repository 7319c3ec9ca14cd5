package applicationdefinition

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/workers"
	"waybill.dev/waybill/sync/reconcile"
)

const defaultWorkers = 4

// SetupWithManager adds the controller to a manager. It must be called before the registry engages
// any cluster, and after the controller of KubernetesClusters was set up, which installs the CRD of
// the copies.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.kernel = reconcile.NewKernel(minBackoff, maxBackoff)
	r.waker = &reconcile.Waker[ctrl.Request]{}
	r.started = sync.OnceValue(time.Now)
	r.ended = func() bool { return ctx.Err() != nil }
	r.Clusters.OnEngage(r.engage)
	r.Clusters.Subscribe(func(key types.NamespacedName, reachable bool) { r.reached(ctx, key, reachable) })
	return ctrl.NewControllerManagedBy(mgr).
		Named("applicationdefinition").
		For(&v1alpha1.ApplicationDefinition{}, builder.WithPredicates(changed())).
		Watches(&v1alpha1.KubernetesCluster{}, r.clusterEvents()).
		WatchesRawSource(r.waker.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.Workers, defaultWorkers), RateLimiter: reconcile.NewLimiter()}).
		Complete(reconcile.Quiet(r))
}

// changed selects the changes that a definition is reconciled for. It filters out our own status
// writes.
func changed() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		predicate.Funcs{UpdateFunc: schemasChanged})
}

// gatherFor is how long events of a definition are gathered: with hundreds of clusters, its status
// is written about twice a second at most.
const gatherFor = 300 * time.Millisecond

func (r *Reconciler) wakeSoon(name string) {
	r.waker.WakeAfter(ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}, gatherFor)
}

// wakeAll enqueues every definition, because clusters that have a copy came or went.
func (r *Reconciler) wakeAll(ctx context.Context) {
	if r.ended() {
		return
	}
	names, err := r.names(ctx)
	if err != nil {
		ctrl.Log.WithName("applicationdefinition").Error(err, "wake definitions")
	}
	for _, name := range names {
		r.wakeSoon(name)
	}
}

// reached is called when a cluster is engaged, lost or back.
func (r *Reconciler) reached(ctx context.Context, key types.NamespacedName, reachable bool) {
	c := r.copiers.Get(key)
	switch {
	case c == nil, !reachable && c.State() == workers.Learning:
		r.wakeAll(ctx)
	case reachable:
		c.Retry()
	}
}

// clusterEvents enqueues the definitions whose use in a cluster has changed. If other definitions
// may select the cluster than before, it enqueues all of them, and all copies in the cluster.
func (r *Reconciler) clusterEvents() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	used := func(before, after *v1alpha1.KubernetesClusterStatus) {
		for _, name := range reused(before, after) {
			r.wakeSoon(name)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ queue) {
			used(&v1alpha1.KubernetesClusterStatus{}, &e.Object.(*v1alpha1.KubernetesCluster).Status)
			r.wakeAll(ctx)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ queue) {
			before, after := e.ObjectOld.(*v1alpha1.KubernetesCluster), e.ObjectNew.(*v1alpha1.KubernetesCluster)
			used(&before.Status, &after.Status)
			for _, name := range provisionChanged(before.Status.Provided, after.Status.Provided) {
				r.wakeSoon(name)
			}
			if before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels) {
				r.lookAtAll(ctx, after)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ queue) {
			used(&e.Object.(*v1alpha1.KubernetesCluster).Status, &v1alpha1.KubernetesClusterStatus{})
			r.wakeAll(ctx)
		},
	}
}

// lookAtAll enqueues every copy in a cluster, and every definition.
func (r *Reconciler) lookAtAll(ctx context.Context, kc *v1alpha1.KubernetesCluster) {
	if c := r.copiers.Get(client.ObjectKeyFromObject(kc)); c != nil {
		if names, err := r.names(ctx); err == nil {
			c.addAll(names)
		}
	}
	r.wakeAll(ctx)
}
