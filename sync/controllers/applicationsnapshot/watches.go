package applicationsnapshot

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
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
	"waybill.dev/waybill/sync/data/snapshot/volumes"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// SetupWithManager adds the controllers of both kinds to a manager. Watches end with ctx.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.kernel, r.contents = kernel.NewKernel(minBackoff, maxBackoff), kernel.NewKernel(minBackoff, maxBackoff)
	r.Workers, r.Patience = cmp.Or(r.Workers, defaultWorkers), cmp.Or(r.Patience, defaultPatience)
	r.gate = newGate(ctx, cmp.Or(r.Parallel, defaultParallel), cmp.Or(r.Turn, defaultTurn),
		func(name types.NamespacedName) { r.waker.Wake(ctrl.Request{NamespacedName: name}) })
	var err error
	if r.cluster, err = volumes.NewClient(mgr.GetConfig(), mgr.GetRESTMapper()); err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	r.volumes = &volumes.Volumes{Client: r.cluster}
	r.watch = volumes.NewWatch(ctx, objects, r.volumes, r.wake)
	r.unused = kernel.NewJobs(ctx, cmp.Or(r.Waits, defaultWaits),
		func(key kernel.Key) { r.waker.WakeFirst(ctrl.Request{NamespacedName: key.NamespacedName}) },
		func(err error) error { return err }).
		TakingTurns(func(key kernel.Key) string { return key.Namespace })
	err = ctrl.NewControllerManagedBy(mgr).
		Named("applicationsnapshot").
		For(&v1alpha1.ApplicationSnapshot{}, builder.WithPredicates(kernel.Changed())).
		Watches(&v1alpha1.ApplicationSnapshot{}, handler.Funcs{DeleteFunc: r.gone}).
		Watches(&v1alpha1.ExecutionHook{}, handler.Funcs{
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) { r.hookOf(e.ObjectNew) },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { r.hookOf(e.Object) },
		}, builder.WithPredicates(hookEnded())).
		Watches(&v1alpha1.ApplicationSnapshotContent{}, handler.EnqueueRequestsFromMapFunc(boundTo), builder.WithPredicates(deleted())).
		Watches(&v1alpha1.StatefulApplication{}, handler.EnqueueRequestsFromMapFunc(r.held)).
		Watches(&v1alpha1.ApplicationRollback{}, handler.EnqueueRequestsFromMapFunc(r.rolledBack)).
		WatchesRawSource(r.waker.Source()).
		WithOptions(controller.Options{RateLimiter: kernel.NewLimiter(), MaxConcurrentReconciles: r.Workers}).
		Complete(kernel.Quiet(r))
	if err != nil {
		return err
	}
	return (&contentReconciler{Reconciler: r}).setup(mgr)
}

// queue is that of the controller.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wake enqueues the snapshot that a VolumeSnapshot belongs to, as long as it is being taken.
func (r *Reconciler) wake(uid types.UID) {
	switch s := r.sessions.Get(uid); {
	case s == nil:
	case s.resting.Load():
		r.waker.WakeFirst(ctrl.Request{NamespacedName: s.name})
	default:
		r.waker.Wake(ctrl.Request{NamespacedName: s.name})
	}
}

// hookOf enqueues the snapshot that an ExecutionHook belongs to, before others: its application is quiesced.
func (r *Reconciler) hookOf(hook client.Object) {
	if owner := metav1.GetControllerOf(hook); owner != nil && owner.Kind == v1alpha1.ApplicationSnapshotKind {
		r.waker.WakeFirst(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: hook.GetNamespace(), Name: owner.Name}})
	}
}

// gone drops what is kept of a snapshot that was deleted.
func (r *Reconciler) gone(_ context.Context, e event.DeleteEvent, _ queue) {
	if obj, ok := e.Object.(*v1alpha1.ApplicationSnapshot); ok {
		r.forget(obj)
		r.kernel.Forget(obj.UID)
	}
}

// hookEnded passes what changes the outcome of an ExecutionHook, or ends it.
func hookEnded() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // by us
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, isHook := e.ObjectOld.(*v1alpha1.ExecutionHook)
			is, _ := e.ObjectNew.(*v1alpha1.ExecutionHook)
			return isHook && conditions.GetReason(was, v1alpha1.ReadyCondition) != conditions.GetReason(is, v1alpha1.ReadyCondition)
		},
	}
}

// deleted passes the end of an object only.
func deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// boundTo returns the snapshot that a content is bound to.
func boundTo(_ context.Context, obj client.Object) []reconcile.Request {
	content, ok := obj.(*v1alpha1.ApplicationSnapshotContent)
	if !ok || content.Spec.SnapshotRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: content.Spec.SnapshotRef.Namespace, Name: content.Spec.SnapshotRef.Name}}}
}

// held returns the snapshots that are being deleted: a restore or a rollback that needed one may have
// ended.
func (r *Reconciler) held(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.those(ctx, func(s *v1alpha1.ApplicationSnapshot) bool { return !s.DeletionTimestamp.IsZero() })
}

// rolledBack returns the snapshots that are being deleted, and those of the application of a rollback that may wait for
// it to end.
func (r *Reconciler) rolledBack(ctx context.Context, of client.Object) []reconcile.Request {
	rollback, ok := of.(*v1alpha1.ApplicationRollback)
	if !ok {
		return nil
	}
	names := r.namesOf(ctx, rollback)
	return r.those(ctx, func(s *v1alpha1.ApplicationSnapshot) bool {
		if !s.DeletionTimestamp.IsZero() {
			return true
		}
		switch s.Status.Phase {
		case "", v1alpha1.SnapshotPending, v1alpha1.SnapshotCapturing:
			return s.Namespace == rollback.Namespace && names[s.Spec.Source.ApplicationName]
		}
		return false
	})
}

// namesOf returns the names of the StatefulApplications whose Application a rollback changes.
func (r *Reconciler) namesOf(ctx context.Context, rollback *v1alpha1.ApplicationRollback) map[string]bool {
	names := map[string]bool{rollback.Spec.ApplicationName: true}
	all := &v1alpha1.StatefulApplicationList{}
	if err := r.Client.List(ctx, all, client.InNamespace(rollback.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return names // the cache has been stopped
	}
	for i := range all.Items {
		if all.Items[i].GetApplicationName() == rollback.Status.ApplicationName {
			names[all.Items[i].Name] = true
		}
	}
	return names
}

// those returns the snapshots that are wanted.
func (r *Reconciler) those(ctx context.Context, wanted func(*v1alpha1.ApplicationSnapshot) bool) []reconcile.Request {
	all := &v1alpha1.ApplicationSnapshotList{}
	if err := r.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has been stopped
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if s := &all.Items[i]; wanted(s) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return requests
}
