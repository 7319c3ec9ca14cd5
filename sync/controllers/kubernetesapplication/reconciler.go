package kubernetesapplication

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication/placement"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/reconcile"
)

// Admission requires users who write KubernetesApplications and their resources to have the right
// to use clusters, and to read Secrets. This controller writes them.

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesapplications,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesapplications/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesapplications/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesapplicationresources,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesclusters,verbs=get;list;watch;use
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler schedules KubernetesApplications and keeps their resources. Fields without a
// comment are required.
type Reconciler struct {
	// Kubernetes options.
	Client   client.Client
	Recorder events.EventRecorder
	Clusters *cluster.Registry
	HubID    string
	// Direct reads from the API server itself, past the caches.
	Direct client.Reader

	// ClusterSelector selects the KubernetesClusters that this process serves. Applications
	// of other clusters are left alone. Default: all.
	ClusterSelector labels.Selector
	// Workers is how many applications are reconciled at a time. Default: 8.
	Workers int

	kernel     *reconcile.Kernel
	waker      *reconcile.Waker[ctrl.Request]
	filters    placement.Filters
	scores     placement.Scores
	placements *placements
	reports    *reports
	kinds      *kinds
	// started is when the first application was reconciled.
	started func() time.Time
	// fill fills the record of placements, once, from the cache.
	fill func() error
}

// Limits of the back-off of an application that fails for a reason that no event will end.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// retryConflict is how long to wait after a conflict with a concurrent write.
const retryConflict = 200 * time.Millisecond

// Reconcile finds a cluster for the application if it has none, and brings its resources to what
// its templates say.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.fill(); err != nil {
		return ctrl.Result{}, err
	}
	app := &v1alpha1.KubernetesApplication{}
	if err := r.Client.Get(ctx, req.NamespacedName, app); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := r.newScope(app)
	err := r.prepare(ctx, s)
	switch {
	case s.skip:
		return ctrl.Result{RequeueAfter: s.requeueAfter}, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return retried(err)
	}
	pass := r.kernel.Begin(r.Client, r.Recorder, app)
	r.kernel.Forget(r.placements.met(s.key, app.UID))
	if err != nil {
		return pass.Finish(ctx, reconcile.Outcome{}, err)
	}
	outcome, err := r.run(ctx, s)
	outcome.Unhandled = s.refused() // else the next try would not pass it on
	if err == nil && outcome.Released {
		return retried(reconcile.RemoveFinalizer(ctx, r.Client, app))
	}
	if err != nil || !outcome.Pending {
		s.conclude(err)
	}
	observeMetrics(app)
	return pass.Finish(ctx, outcome, err)
}

// prepare looks up the cluster, and writes what must be there before anything else happens: the
// cluster, if one was found, and the finalizer.
func (r *Reconciler) prepare(ctx context.Context, s *scope) error {
	r.placements.note(s.key, s.app)
	if served, err := r.lookUpCluster(ctx, s); err != nil || !served {
		s.skip = err == nil
		return err
	}
	held := controllerutil.ContainsFinalizer(s.app, v1alpha1.Finalizer)
	switch {
	case s.deleting():
		s.skip = !held // others may still hold it; nothing of ours is left
		return nil
	case s.app.Spec.ClusterName == "":
		return r.schedule(ctx, s)
	case !held:
		return r.write(ctx, s, s.app.Spec.ClusterName)
	default:
		return nil
	}
}

// run takes the steps of a pass, in order.
func (r *Reconciler) run(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	switch {
	case s.undecided:
		return reconcile.Outcome{Pending: true, RequeueAfter: s.requeueAfter}, nil
	case s.unplaced != nil:
		return reconcile.Outcome{}, s.unplaced
	}
	ours, err := r.ours(ctx, s)
	if err != nil {
		return reconcile.Outcome{}, err
	}
	switch followed, err := r.followed(ctx, s, ours); {
	case followed || err != nil:
		return reconcile.Outcome{Pending: true, RequeueAfter: retryConflict}, err
	case s.deleting():
		return r.remove(ctx, s, ours)
	}
	s.list(ours)
	r.keep(ctx, s)
	return r.judge(s)
}

// lookUpCluster finds the KubernetesCluster that the application is scheduled to, and reports
// whether this process serves it. Every process serves one that does not exist.
func (r *Reconciler) lookUpCluster(ctx context.Context, s *scope) (bool, error) {
	if s.app.Spec.ClusterName == "" {
		return true, nil
	}
	r.kinds.leave(s.key)
	r.reports.leave(s.key)
	kc := &v1alpha1.KubernetesCluster{}
	err := r.Client.Get(ctx, s.clusterKey(), kc)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get cluster: %w", err)
	}
	s.cluster = kc
	return r.serves(kc), nil
}

// serves reports whether this process serves a KubernetesCluster.
func (r *Reconciler) serves(kc *v1alpha1.KubernetesCluster) bool {
	return r.ClusterSelector == nil || r.ClusterSelector.Matches(labels.Set(kc.Labels))
}

// write writes the cluster and the finalizer to the application, in one request. The finalizer is
// there before the first resource, so that none is left behind.
func (r *Reconciler) write(ctx context.Context, s *scope, cluster string) error {
	written := s.app.DeepCopy()
	written.Spec.ClusterName = cluster
	controllerutil.AddFinalizer(written, v1alpha1.Finalizer)
	patch := client.MergeFromWithOptions(s.app.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, written, patch, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("write application: %w", err)
	}
	written.DeepCopyInto(s.app)
	return nil
}

// forget drops everything of an application that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.kernel.Forget(r.placements.leave(key))
	r.kinds.leave(key)
	r.reports.leave(key)
	forgetMetrics(key)
}

// retried requeues soon if a write conflicted with a concurrent one. A write that came too early,
// or was to something that is gone, has nothing to report.
func retried(err error) (ctrl.Result, error) {
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: retryConflict}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	default:
		return ctrl.Result{}, err
	}
}

// owner returns what the resources of an application are marked with.
func (r *Reconciler) owner(key types.NamespacedName) string {
	return apply.Owner{HubID: r.HubID, Kind: v1alpha1.KubernetesApplicationKind, Namespace: key.Namespace, Name: key.Name}.String()
}
