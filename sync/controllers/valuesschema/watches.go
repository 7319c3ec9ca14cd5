package valuesschema

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
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
	wake := func(k key) {
		r.waker.Wake(ctrl.Request{NamespacedName: types.NamespacedName{Name: k.definition}})
	}
	r.charts = subscription.NewPool[key, learned](ctx, subscription.Options[key]{
		Width: fetchesPerSource, Wake: wake, Backoff: reconcile.NewKernel(minBackoff, maxBackoff).Backoff,
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("valuesschema").
		For(&v1alpha1.ApplicationDefinition{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(r.waker.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: reconcile.NewLimiter()}).
		Complete(reconcile.Quiet(r))
}
