package statefulapplication

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"waybill.dev/waybill/api/v1alpha1"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// workers is how many applications are restored at a time.
const workers = 10

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	r.kernel = kernel.NewKernel(minBackoff, maxBackoff)
	restoring := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetAnnotations()[v1alpha1.RestoredByAnnotation] != ""
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("statefulapplication").
		For(&v1alpha1.StatefulApplication{}, builder.WithPredicates(kernel.Changed())).
		Watches(&v1alpha1.StatefulApplication{}, handler.Funcs{DeleteFunc: r.forget}).
		Watches(&v1alpha1.Application{}, r.those(ofApplication), builder.WithPredicates(presence())).
		Watches(&v1alpha1.ApplicationSnapshot{}, r.those(ofSnapshot)).
		Watches(&v1alpha1.StatefulApplicationClass{}, r.those(ofClass)).
		WatchesMetadata(&corev1.PersistentVolumeClaim{}, r.those(ofRestored), builder.WithPredicates(restoring)).
		WatchesMetadata(&v1alpha1.ApplicationInstallation{}, r.those(ofRestored), builder.WithPredicates(restoring)).
		WithOptions(controller.Options{RateLimiter: kernel.NewLimiter(), MaxConcurrentReconciles: workers}).
		Complete(kernel.Quiet(r))
}

// presence passes what is created or deleted.
func presence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// forget drops what is kept of an object that is gone.
func (r *Reconciler) forget(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r.kernel.Forget(e.Object.GetUID())
}

// those returns a handler that enqueues the StatefulApplications that an object concerns.
func (r *Reconciler) those(concerns func(client.Object, *v1alpha1.StatefulApplication) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		all := &v1alpha1.StatefulApplicationList{}
		if err := r.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
			return nil // the cache has been stopped
		}
		var requests []reconcile.Request
		for i := range all.Items {
			if a := &all.Items[i]; concerns(o, a) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(a)})
			}
		}
		return requests
	})
}

func ofApplication(o client.Object, a *v1alpha1.StatefulApplication) bool {
	return a.Namespace == o.GetNamespace() && a.GetApplicationName() == o.GetName()
}

func ofSnapshot(o client.Object, a *v1alpha1.StatefulApplication) bool {
	snapshot, ok := o.(*v1alpha1.ApplicationSnapshot)
	if ok && snapshot.Namespace == a.Namespace && snapshot.Spec.Source.ApplicationName == a.Name {
		return true
	}
	return !restored(a) && snapshotOf(a) == client.ObjectKeyFromObject(o)
}

// ofClass reports whether one waits for a class.
func ofClass(_ client.Object, a *v1alpha1.StatefulApplication) bool {
	return !restored(a) || a.Spec.ApplicationClassName != ""
}

func ofRestored(o client.Object, a *v1alpha1.StatefulApplication) bool {
	return a.Namespace == o.GetNamespace() && string(a.UID) == o.GetAnnotations()[v1alpha1.RestoredByAnnotation] && !restored(a)
}
