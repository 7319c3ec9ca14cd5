package valuesschema

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/subscription"
)

const (
	workers = 2
	// fetchesPerSource is how many charts are fetched from one source at a time: installations, which
	// users wait for, come first.
	fetchesPerSource = 2
)

// SetupWithManager adds the controller to a manager. ctx ends its jobs.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.waker = &reconcile.Waker[ctrl.Request]{}
	if r.Backoff == nil {
		r.Backoff = reconcile.NewKernel(minBackoff, maxBackoff).Backoff
	}
	wake := func(k key) {
		r.waker.Wake(ctrl.Request{NamespacedName: types.NamespacedName{Name: k.definition}})
	}
	r.charts = subscription.NewPool[key, learned](ctx, subscription.Options[key]{
		Width: fetchesPerSource, Wake: wake, Backoff: r.Backoff,
	})
	_, _, err := watch.Handle(ctx, mgr.GetCache(), content.Metadata(content.Secret), watch.Changes(differs, func(o client.Object) {
		if o.GetNamespace() == r.SystemNamespace {
			r.wakeNaming(ctx, o.GetName())
		}
	}))
	if err != nil {
		return fmt.Errorf("watch Secrets: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("valuesschema").
		For(&v1alpha1.ApplicationDefinition{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(r.waker.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: reconcile.NewLimiter()}).
		Complete(reconcile.Quiet(r))
}

// differs reports whether a Secret has changed.
func differs(was, is client.Object) bool { return was.GetResourceVersion() != is.GetResourceVersion() }

// wakeNaming enqueues the definitions whose sources name a Secret of the system namespace.
func (r *Reconciler) wakeNaming(ctx context.Context, secret string) {
	found := &v1alpha1.ApplicationDefinitionList{}
	if err := r.Client.List(ctx, found, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list definitions")
		return
	}
	for i := range found.Items {
		if slices.Contains(found.Items[i].GetSecrets(), secret) {
			r.waker.Wake(ctrl.Request{NamespacedName: types.NamespacedName{Name: found.Items[i].Name}})
		}
	}
}
