package executionhook

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/hook"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=executionhooks,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=executionhooks/status,verbs=get;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=hookactions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get
// +kubebuilder:rbac:groups="",resources=pods/exec,verbs=create;get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Runner runs a command in a container; *hook.Runner is one.
type Runner interface {
	Run(ctx context.Context, t hook.Target, command []string, timeout time.Duration) (hook.Result, error)
}

// Reconciler reconciles the ExecutionHooks of the cluster that it runs in. Fields without a comment
// are required.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Runner   Runner
	// Pods reads Pods from the API server: a cache of all of them would serve no other controller.
	Pods client.Reader
	// Parallel is how many hooks of one namespace run at a time. Default: 20.
	Parallel int

	kernel *kernel.Kernel
	jobs   *kernel.Jobs[request, result]
}

type request struct {
	types.NamespacedName
	uid types.UID
}

// Back-off of an ExecutionHook whose status could not be written.
const (
	minBackoff = time.Second
	maxBackoff = time.Minute
)

// defaultParallel is how many hooks of one namespace run at a time.
const defaultParallel = 20

// SetupWithManager adds the controller to a manager. Commands that run when ctx ends are interrupted.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.kernel = kernel.NewKernel(minBackoff, maxBackoff)
	waker := &kernel.Waker[ctrl.Request]{}
	r.jobs = kernel.NewJobs(ctx, cmp.Or(r.Parallel, defaultParallel),
		func(key request) { waker.Wake(ctrl.Request{NamespacedName: key.NamespacedName}) },
		func(err error) result { return result{err: err} })
	return ctrl.NewControllerManagedBy(mgr).
		Named("executionhook").
		For(&v1alpha1.ExecutionHook{}, builder.WithPredicates(kernel.Changed())).
		Watches(&v1alpha1.ExecutionHook{}, handler.Funcs{DeleteFunc: r.forget}).
		Watches(&v1alpha1.HookAction{}, handler.EnqueueRequestsFromMapFunc(r.waiting), builder.WithPredicates(kernel.Changed())).
		WatchesRawSource(waker.Source()).
		WithOptions(controller.Options{RateLimiter: kernel.NewLimiter()}).
		Complete(kernel.Quiet(r))
}

// forget drops what is kept of a hook that is gone, with its job: it has no finalizer, so that its last
// pass may not have seen it.
func (r *Reconciler) forget(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r.jobs.Drop(request{client.ObjectKeyFromObject(e.Object), e.Object.GetUID()})
	r.kernel.Forget(e.Object.GetUID())
}

// waiting returns the hooks that a HookAction was missing for.
func (r *Reconciler) waiting(ctx context.Context, action client.Object) []reconcile.Request {
	hooks := &v1alpha1.ExecutionHookList{}
	if err := r.Client.List(ctx, hooks, client.InNamespace(action.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has been stopped
	}
	var requests []reconcile.Request
	for i := range hooks.Items {
		if h := &hooks.Items[i]; h.Spec.ActionName == action.GetName() && len(h.Status.Runs) == 0 {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(h)})
		}
	}
	return requests
}

// Reconcile runs an ExecutionHook that has not been run, and reports how that went.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := &v1alpha1.ExecutionHook{}
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	key := request{req.NamespacedName, obj.UID}
	if !obj.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	pass := r.kernel.Begin(r.Client, r.Recorder, obj)
	if done(obj) {
		return ctrl.Result{}, nil
	}
	outcome, err := r.run(ctx, key, obj)
	return pass.Finish(ctx, outcome, err)
}

// run starts the job of the hook or, if it has ended, reports how it went.
func (r *Reconciler) run(ctx context.Context, key request, obj *v1alpha1.ExecutionHook) (kernel.Outcome, error) {
	action, err := r.actionOf(ctx, obj)
	switch {
	case apierrors.IsNotFound(err) && len(obj.Status.Runs) == 0:
		return kernel.Outcome{}, kernel.Stalled(v1alpha1.HookActionNotFoundReason,
			"HookAction %q does not exist in namespace %q", obj.Spec.ActionName, obj.Namespace)
	case err != nil && !apierrors.IsNotFound(err):
		return kernel.Outcome{}, fmt.Errorf("get HookAction %q: %w", obj.Spec.ActionName, err)
	}
	work := &work{reconciler: r, hook: obj.DeepCopy(), action: action}
	ended, ok := r.jobs.Do(key.Namespace, key, "", work.run)
	if !ok {
		return kernel.Outcome{Pending: true}, nil
	}
	if ended.err != nil {
		return kernel.Outcome{}, ended.err
	}
	obj.Status.Runs, obj.Status.Tags = ended.runs, ended.tags
	return judge(obj, action)
}

// actionOf returns what a hook runs.
func (r *Reconciler) actionOf(ctx context.Context, obj *v1alpha1.ExecutionHook) (*v1alpha1.HookAction, error) {
	action := &v1alpha1.HookAction{}
	if obj.Spec.Action == nil {
		return action, r.Client.Get(ctx, types.NamespacedName{Namespace: obj.Namespace, Name: obj.Spec.ActionName}, action)
	}
	action.Namespace, action.Name, action.Spec = obj.Namespace, obj.Spec.ActionName, *obj.Spec.Action
	return action, nil
}
