package sourcecredential

import (
	"context"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/reconcile"
)

// parallelStatuses is how many statuses are written at a time.
const parallelStatuses = 2

// SetupWithManager adds the controller to a manager. It must be called before the registry engages any
// cluster.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.metadata = mgr.GetCache()
	r.waker = &reconcile.Waker[ctrl.Request]{}
	r.kernel = reconcile.NewKernel(minBackoff, maxBackoff)
	r.local = newCopier(ctx, r, r.Clusters.Local(), types.NamespacedName{})
	// The leader alone writes, and caches are filled when it starts.
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { r.local.Run(ctx); return nil })); err != nil {
		return err
	}
	r.Clusters.OnEngage(r.engage)
	r.Clusters.Subscribe(func(key types.NamespacedName, reachable bool) {
		if c := r.seeds.Get(key); c != nil && reachable {
			c.again()
		}
		r.wake(key)
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("sourcecredential").
		For(&v1alpha1.KubernetesCluster{}, builder.WithPredicates(written())).
		Watches(&v1alpha1.KubernetesCluster{}, r.needs(), builder.WithPredicates(needsChanged())).
		Watches(&v1alpha1.ApplicationDefinition{}, r.needs(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(content.Metadata(content.Secret), r.secrets()).
		WatchesRawSource(r.waker.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: parallelStatuses, RateLimiter: reconcile.NewLimiter()}).
		Complete(reconcile.Quiet(r))
}

// engage starts to copy to a seed; that ends when the seed is disengaged. The hub gets no copies of its own
// Secrets, no matter how it is reached, and a user cluster gets none at all.
func (r *Reconciler) engage(ctx context.Context, c *cluster.Cluster) error {
	kc := &v1alpha1.KubernetesCluster{}
	if err := r.Client.Get(ctx, c.Name(), kc); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !r.isSeed(kc) || c.UID() == r.Clusters.Local().UID() {
		r.wake(c.Name())
		return nil
	}
	made := newCopier(ctx, r, c, c.Name())
	r.seeds.Put(ctx, c.Name(), made)
	go made.Run(ctx)
	return nil
}

func (r *Reconciler) wake(key types.NamespacedName) {
	r.waker.Wake(ctrl.Request{NamespacedName: key})
}

// secrets enqueues copies when a Secret of the system namespace has changed, and when one is gone that was
// in the way of a copy.
func (r *Reconciler) secrets() handler.EventHandler {
	look := func(o client.Object) {
		if o.GetNamespace() != r.SystemNamespace {
			return
		}
		for _, c := range append(r.seeds.All(), r.local) {
			c.Add(all)
		}
	}
	return eventHandler{
		changed: look,
		gone: func(o client.Object) {
			look(o)
			if r.ToNamespaces && o.GetNamespace() != r.SystemNamespace {
				r.local.Add(o.GetName())
			}
		},
	}.funcs()
}

// needs has what should be copied found out again where it may have changed: in a seed, or else in the hub.
func (r *Reconciler) needs() handler.EventHandler {
	look := func(o client.Object) {
		if kc, ok := o.(*v1alpha1.KubernetesCluster); ok && kc.IsSeed() {
			if c := r.seeds.Get(client.ObjectKeyFromObject(kc)); c != nil {
				c.again()
			}
			return
		}
		if r.ToNamespaces {
			r.local.Add(all)
		}
	}
	return eventHandler{changed: look, gone: look}.funcs()
}

// eventHandler enqueues nothing: copies enqueue the KubernetesClusters whose condition may change.
type eventHandler struct{ changed, gone func(client.Object) }

func (h eventHandler) funcs() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { h.changed(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) { h.changed(e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { h.gone(e.Object) },
	}
}

// written lets through a KubernetesCluster that is new, and what others have made of the condition: the
// conditions are one list, and the controller of KubernetesClusters may have written an older one.
func written() predicate.Predicate {
	return predicate.Or[client.Object](reconcile.Changed(), predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*v1alpha1.KubernetesCluster), e.ObjectNew.(*v1alpha1.KubernetesCluster)
			return !equality.Semantic.DeepEqual(
				conditions.Get(was, v1alpha1.CredentialsCopiedCondition), conditions.Get(is, v1alpha1.CredentialsCopiedCondition))
		},
	})
}

// needsChanged lets through the changes of a KubernetesCluster that may change what it needs, and requests to
// try again.
func needsChanged() predicate.Predicate {
	return predicate.Or[client.Object](reconcile.Changed(), predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*v1alpha1.KubernetesCluster), e.ObjectNew.(*v1alpha1.KubernetesCluster)
			return !maps.Equal(was.Labels, is.Labels) || was.Status.UID != is.Status.UID ||
				!slices.Equal(slices.Sorted(maps.Keys(was.Status.Definitions)), slices.Sorted(maps.Keys(is.Status.Definitions)))
		},
	})
}
