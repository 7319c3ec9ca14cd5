package gitsync

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/source/subscription"
)

const (
	defaultWorkers = 8
	// jobsPerLane is how many jobs run at a time per repository, and per cluster.
	jobsPerLane = 8
)

// secretIndex finds the GitSyncs that name a Secret.
const secretIndex = "spec.secretRef.name"

// SetupWithManager adds the controller to a manager. The jobs that run beside the workers end with
// ctx.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.kernel = reconcile.NewKernel(cmp.Or(r.MinBackoff, minBackoff), cmp.Or(r.MaxBackoff, maxBackoff))
	r.waker = &reconcile.Waker[ctrl.Request]{}
	wake := func(k reconcile.Key) { r.waker.Wake(ctrl.Request{NamespacedName: k.NamespacedName}) }
	r.looks = subscription.NewPool[reconcile.Key, loaded](ctx, subscription.Options[reconcile.Key]{Width: jobsPerLane, Wake: wake, Backoff: r.kernel.Backoff})
	r.loads = reconcile.NewJobs(ctx, jobsPerLane, wake, failedToLoad)
	r.deliveries = delivery.NewPool(ctx, delivery.Options{
		Width:   jobsPerLane,
		Wake:    func(owner apply.Owner) { r.waker.Wake(ctrl.Request{NamespacedName: owner.ObjectKey()}) },
		Backoff: r.kernel.Backoff,
		Drain:   r.Drain,
	})
	r.arrivals = newArrivals(func(name types.NamespacedName) { r.waker.Wake(ctrl.Request{NamespacedName: name}) })
	r.inventories = &inventory.Store{}
	r.Renders = cmp.Or(r.Renders, render.NewSlots(nil))
	r.Clusters.Subscribe(func(key types.NamespacedName, _ bool) { r.wakeSelecting(ctx, key) })
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.GitSync{}, secretIndex, secretName); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("gitsync").
		For(&v1alpha1.GitSync{}, builder.WithPredicates(reconcile.Changed())).
		WatchesMetadata(content.Metadata(content.Secret), handler.EnqueueRequestsFromMapFunc(r.namingSecret)).
		Watches(&v1alpha1.KubernetesCluster{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace), builder.WithPredicates(placementChanged())).
		WatchesRawSource(r.waker.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.Workers, defaultWorkers), RateLimiter: reconcile.NewLimiter()}).
		Complete(reconcile.Quiet(r))
}

// failedToLoad is the result of a load that panicked.
func failedToLoad(err error) loaded { return loaded{err: err} }

// placementChanged passes the events that affect whether a cluster is delivered to.
func placementChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

func secretName(o client.Object) []string {
	if ref := o.(*v1alpha1.GitSync).Spec.SecretRef; ref != nil {
		return []string{ref.Name}
	}
	return nil
}

func (r *Reconciler) namingSecret(ctx context.Context, secret client.Object) []ctrl.Request {
	return r.list(ctx, client.InNamespace(secret.GetNamespace()), client.MatchingFields{secretIndex: secret.GetName()})
}

func (r *Reconciler) inNamespace(ctx context.Context, o client.Object) []ctrl.Request {
	return r.selecting(ctx, client.ObjectKeyFromObject(o), o.GetLabels())
}

// selecting returns the GitSyncs that deliver to a cluster, or did.
func (r *Reconciler) selecting(ctx context.Context, key types.NamespacedName, set labels.Set) []ctrl.Request {
	found := &v1alpha1.GitSyncList{}
	if err := r.Client.List(ctx, found, client.InNamespace(key.Namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list GitSyncs")
		return nil
	}
	var requests []ctrl.Request
	for i := range found.Items {
		gs := &found.Items[i]
		if delivers(gs, key.Name, set) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(gs)})
		}
	}
	return requests
}

func delivers(gs *v1alpha1.GitSync, name string, set labels.Set) bool {
	for _, c := range gs.Status.Clusters {
		if c.Name == name {
			return true
		}
	}
	if gs.Spec.ClusterSelector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(gs.Spec.ClusterSelector)
	return err == nil && (set == nil || selector.Matches(set))
}

// wakeSelecting enqueues the GitSyncs of a cluster that became unreachable, or is back.
func (r *Reconciler) wakeSelecting(ctx context.Context, key types.NamespacedName) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, request := range r.selecting(ctx, key, nil) {
		r.waker.Wake(request)
	}
}

func (r *Reconciler) list(ctx context.Context, opts ...client.ListOption) []ctrl.Request {
	found := &v1alpha1.GitSyncList{}
	if err := r.Client.List(ctx, found, opts...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list GitSyncs")
		return nil
	}
	requests := make([]ctrl.Request, 0, len(found.Items))
	for i := range found.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&found.Items[i])})
	}
	return requests
}
