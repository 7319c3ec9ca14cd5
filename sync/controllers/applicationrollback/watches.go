package applicationrollback

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/keyed"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// parallel is how many rollbacks are advanced at a time.
const parallel = 4

// SetupWithManager adds the controller to a manager. Watches of namespaces end with ctx.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.kernel, r.started = kernel.NewKernel(minBackoff, maxBackoff), time.Now()
	objects, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("build client of metadata: %w", err)
	}
	if r.Live == nil {
		if r.Live, err = client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}); err != nil {
			return fmt.Errorf("build client: %w", err)
		}
	}
	waker := &kernel.Waker[ctrl.Request]{}
	r.watching = &watching{ctx: ctx, client: objects, wake: waker.Wake}
	return ctrl.NewControllerManagedBy(mgr).
		Named("applicationrollback").
		For(&v1alpha1.ApplicationRollback{}, builder.WithPredicates(kernel.Changed())).
		Watches(&v1alpha1.ApplicationRollback{}, handler.EnqueueRequestsFromMapFunc(r.waiting)).
		Watches(&v1alpha1.ApplicationSnapshot{}, handler.EnqueueRequestsFromMapFunc(r.unfinished)).
		Watches(&v1alpha1.StatefulApplication{}, handler.EnqueueRequestsFromMapFunc(r.unfinished)).
		Watches(&v1alpha1.Application{}, handler.EnqueueRequestsFromMapFunc(r.unfinished)).
		WatchesRawSource(waker.Source()).
		WithOptions(controller.Options{RateLimiter: kernel.NewLimiter(), MaxConcurrentReconciles: parallel}).
		Complete(kernel.Quiet(r))
}

// waiting returns the other rollbacks of the namespace that have not begun, or may be about to go back: their application,
// or claims of theirs, may be those of one that has changed.
func (r *Reconciler) waiting(ctx context.Context, obj client.Object) []reconcile.Request {
	changed := obj.(*v1alpha1.ApplicationRollback)
	return r.those(ctx, obj.GetNamespace(), func(other *v1alpha1.ApplicationRollback) bool {
		switch other.Status.Phase {
		case v1alpha1.RollbackPending, v1alpha1.RollbackFailed:
			return other.UID != changed.UID
		case v1alpha1.RollbackCompleted:
			return other.UID != changed.UID && other.Spec.Decision == v1alpha1.RollbackUndone
		}
		return false
	})
}

// unfinished returns the rollbacks of the namespace that may wait for an object of it.
func (r *Reconciler) unfinished(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.those(ctx, obj.GetNamespace(), func(other *v1alpha1.ApplicationRollback) bool {
		phase := other.Status.Phase
		return phase == v1alpha1.RollbackPending || phase == v1alpha1.RollbackSaving || isUnderWay(phase) ||
			phase == v1alpha1.RollbackCompleted && other.Spec.Decision == v1alpha1.RollbackUndone && !isRefused(other)
	})
}

// isRefused reports whether a rollback cannot be undone: that does not change with the objects of its namespace.
func isRefused(b *v1alpha1.ApplicationRollback) bool {
	return conditions.GetReason(b, v1alpha1.ReadyCondition) == v1alpha1.UndoRefusedReason
}

func (r *Reconciler) those(ctx context.Context, namespace string, wanted func(*v1alpha1.ApplicationRollback) bool) []reconcile.Request {
	all := &v1alpha1.ApplicationRollbackList{}
	if err := r.Client.List(ctx, all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has been stopped
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if wanted(&all.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

// watched are the kinds whose objects a rollback waits for.
var watched = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "persistentvolumeclaims"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
}

// watching enqueues rollbacks that are under way whenever something happens in their namespaces. It is
// safe for concurrent use.
type watching struct {
	ctx    context.Context
	client metadata.Interface
	wake   func(ctrl.Request)
	feeds  keyed.Map[ctrl.Request, []*watch.Feed[seen]]
}

// seen is all that is known of an object: that there is one.
type seen struct{ metav1.ObjectMeta }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (s seen) GetObjectMeta() metav1.Object { return &s.ObjectMeta }

// want enqueues a rollback at events from now on. What happened before is shown, too: it is enqueued once at
// the start.
func (w *watching) want(request ctrl.Request) {
	w.feeds.Of(request, func() (feeds []*watch.Feed[seen]) {
		for _, resource := range watched {
			source := watch.Metadata(w.client.Resource(resource).Namespace(request.Namespace), "", "")
			feed := watch.New(source, watch.Sink[seen](sink(func() { w.wake(request) })), reduce)
			feed.Start(w.ctx)
			feeds = append(feeds, feed)
		}
		return feeds
	})
}

// leave ends that.
func (w *watching) leave(request ctrl.Request) {
	feeds := w.feeds.Change(request, func([]*watch.Feed[seen]) ([]*watch.Feed[seen], bool) { return nil, false })
	for _, feed := range feeds {
		feed.End()
	}
}

func reduce(object metav1.Object) seen {
	return seen{metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
}

// sink is a function that is called whenever an object was seen.
type sink func()

// Put implements watch.Sink.
func (s sink) Put(seen) { s() }

// Drop implements watch.Sink.
func (s sink) Drop(seen) { s() }

// Replace implements watch.Sink.
func (s sink) Replace([]seen, string) { s() }
