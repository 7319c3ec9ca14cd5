package gitsync

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/sync/source/subscription"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=gitsyncs,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=gitsyncs/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesclusters,verbs=get;list;watch;use
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationrollbacks;applicationsnapshots,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationdefinitions,verbs=get;list;watch;create;update;patch;delete;install
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",namespace=waybill-system,resources=configmaps,verbs=get;create
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=impersonate
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// Reconciler delivers the content of a git path. Fields without a comment are required.
//
// It impersonates ServiceAccounts: what a tenant commits is applied with the tenant's rights.
// Its own rights are used only for GitSyncs in the system namespace.
type Reconciler struct {
	// Kubernetes options.
	Client   client.Client
	Recorder events.EventRecorder
	Clusters *cluster.Registry
	Secrets  *content.Reader
	HubID    string

	// Sources, and what renders their folders. Default: slots of its own, in which kustomizations are
	// built in this process.
	Git     *git.Store
	Renders *render.Slots

	// Drain lets deliveries finish before the process exits. Default: their contexts are canceled
	// with the process.
	Drain *reconcile.Drain
	// SystemNamespace is the namespace in which a GitSync acts with Waybill's own rights.
	SystemNamespace string
	// Workers is how many GitSyncs are reconciled at a time. Default: 8.
	Workers int
	// MinBackoff and MaxBackoff bound the back-off of a failure that no event resolves. Default: 1 s
	// and 5 min.
	MinBackoff, MaxBackoff time.Duration

	kernel   *reconcile.Kernel
	waker    *reconcile.Waker[ctrl.Request]
	sessions reconcile.Sessions[reconcile.Key, session]
	// released has the UIDs of GitSyncs whose finalizer was removed, until the cache shows that they
	// are gone: a reconciliation of one that it still shows would start over, and delete what another
	// of the name owns.
	released reconcile.Sessions[types.NamespacedName, types.UID]
	// looks has the subscriptions to the repositories, which may hang; loads render what the mirrors have.
	looks *subscription.Pool[reconcile.Key, loaded]
	loads *reconcile.Jobs[reconcile.Key, loaded]
	// deliveries has that of each GitSync to each of its clusters.
	deliveries *delivery.Pool
	// arrivals watches for definitions that arrive in the clusters.
	arrivals *arrivals
	// inventories stores what does not fit into a status.
	inventories *inventory.Store
}

// Defaults of MinBackoff and MaxBackoff.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// Reconcile brings the clusters to the state in the repository, one step per pass.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	gs := &v1alpha1.GitSync{}
	if err := r.Client.Get(ctx, req.NamespacedName, gs); err != nil {
		if apierrors.IsNotFound(err) {
			r.released.Drop(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if uid := r.released.Get(req.NamespacedName); uid != nil && *uid == gs.UID {
		return ctrl.Result{}, nil // it is gone, which the cache does not show yet
	}
	if gs.DeletionTimestamp.IsZero() {
		if err := reconcile.AddFinalizer(ctx, r.Client, gs); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	pass := r.kernel.Begin(r.Client, r.Recorder, gs)
	s := &scope{gs: gs, pass: pass, now: time.Now(), session: r.session(gs)}
	s.looked = s.session.repository.State()
	outcome, err := r.run(ctx, s)
	if err == nil && outcome.Released {
		return ctrl.Result{}, r.release(ctx, s)
	}
	return r.finish(ctx, s, outcome, err)
}

// finish writes the status of a pass, or of its error.
func (r *Reconciler) finish(ctx context.Context, s *scope, outcome reconcile.Outcome, failure error) (ctrl.Result, error) {
	result, err := s.pass.Finish(ctx, outcome, failure)
	if err == nil {
		err = r.written(ctx, s)
	}
	observeMetrics(s, failure)
	return result, err
}

// run executes the steps of a pass, in order, until one cannot continue before an event.
func (r *Reconciler) run(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if !s.gs.DeletionTimestamp.IsZero() {
		return r.remove(ctx, s)
	}
	if s.gs.Spec.Suspend {
		return reconcile.Outcome{Unknown: v1alpha1.SuspendedReason, Message: "suspended: what was delivered stays as it is"}, nil
	}
	before := s.gs.Status.DeepCopy()
	for _, step := range []func(context.Context, *scope) error{
		r.restore,
		r.selectTargets,
		r.retryRefused,
		r.readSecret,
		r.load,
		r.deliver,
		r.collect,
	} {
		if err := step(ctx, s); err != nil {
			return s.outcome(), err
		}
		if s.pending {
			return reconcile.Outcome{Pending: true, RequeueAfter: s.requeueAfter()}, nil
		}
	}
	if s.asking() && s.gs.Status.ObservedGeneration != s.gs.Generation {
		s.tellFetching()
		return reconcile.Outcome{Pending: true, RequeueAfter: s.requeueAfter()}, nil
	}
	outcome, err := s.report()
	outcome.Unhandled = s.asking()
	if left := s.settling(before); err == nil && left > 0 {
		s.gs.Status = *before
		return reconcile.Outcome{Pending: true, RequeueAfter: left}, nil
	}
	return outcome, err
}

// owner returns the mark of delivered objects.
func (r *Reconciler) owner(gs *v1alpha1.GitSync) apply.Owner {
	return apply.Owner{HubID: r.HubID, Kind: v1alpha1.GitSyncKind, Namespace: gs.Namespace, Name: gs.Name}
}
