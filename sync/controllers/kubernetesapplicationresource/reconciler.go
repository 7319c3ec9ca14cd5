package kubernetesapplicationresource

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/reconcile"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesapplicationresources,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesapplicationresources/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesapplications;kubernetesclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationrollbacks;applicationsnapshots,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler submits resources to their clusters. In a cluster it may do what the cluster's
// kubeconfig may; admission has checked that the user who wrote the application may use it. Fields
// without a comment are required.
type Reconciler struct {
	// Kubernetes options.
	Client   client.Client
	Recorder events.EventRecorder
	Clusters *cluster.Registry
	Secrets  *content.Reader
	HubID    string

	// Drain lets jobs finish before the process ends. Default: their contexts are canceled with it.
	Drain *reconcile.Drain
	// ClusterSelector selects the KubernetesClusters that this process serves. Default: all.
	ClusterSelector labels.Selector
	// Workers is how many resources are reconciled at a time. Default: 8.
	Workers int
	// JobsPerCluster is how many resources are applied or deleted at a time in each cluster.
	// Default: 10.
	JobsPerCluster int

	// direct reads from the API server itself, past the caches: those of other kinds may be behind
	// that of the resources.
	direct   client.Reader
	kernel   *reconcile.Kernel
	waker    *reconcile.Waker[ctrl.Request]
	sessions reconcile.Sessions[types.NamespacedName, session]
	// deliveries has that of each resource to its cluster.
	deliveries *delivery.Pool
}

// Limits of the back-off of a resource that fails for a reason that no event will end.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// unwatchedInterval is how often objects that the kubeconfig may not watch are read.
const unwatchedInterval = time.Minute

// Reconcile brings the cluster to what the resource says, one step per pass.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	kar := &v1alpha1.KubernetesApplicationResource{}
	if err := r.Client.Get(ctx, req.NamespacedName, kar); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{kar: kar, owner: r.owner(req.NamespacedName)}
	if served, err := r.lookUpCluster(ctx, s); err != nil || !served {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, err
	}
	deleting, held := !kar.DeletionTimestamp.IsZero(), controllerutil.ContainsFinalizer(kar, v1alpha1.Finalizer)
	switch {
	case deleting && !held:
		return ctrl.Result{}, nil // others may still hold it; nothing of ours is left
	case !deleting && !held && kar.Spec.ClusterName != "":
		if err := reconcile.AddFinalizer(ctx, r.Client, kar); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	s.session = r.session(kar)
	pass := r.kernel.Begin(r.Client, r.Recorder, kar)
	outcome, err := r.run(ctx, s)
	if err == nil && outcome.Released {
		return ctrl.Result{}, r.release(ctx, s)
	}
	if err != nil || !outcome.Pending {
		s.conclude(outcome, err)
	}
	observeMetrics(kar, err)
	return pass.Finish(ctx, outcome, err)
}

// run takes the steps of a pass, in order, until one of them fails or sets the outcome.
func (r *Reconciler) run(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if !s.kar.DeletionTimestamp.IsZero() {
		return r.remove(ctx, s)
	}
	for _, step := range []func(context.Context, *scope) error{
		r.place,
		r.readSecrets,
		r.submit,
	} {
		if err := step(ctx, s); err != nil {
			return reconcile.Outcome{}, err
		}
		if s.outcome != nil {
			return *s.outcome, nil
		}
	}
	return s.report()
}
