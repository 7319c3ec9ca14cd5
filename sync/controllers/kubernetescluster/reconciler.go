package kubernetescluster

import (
	"context"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/controllers/kubernetescluster/agent"
	"waybill.dev/waybill/sync/controllers/kubernetescluster/provide"
	"waybill.dev/waybill/sync/reconcile"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesclusters,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesclusters/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=gitsyncs;kubernetesapplications;kubernetesapplicationresources,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationinstallations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationdefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=waybill-system,resources=configmaps,verbs=get;create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler keeps the inventory of user clusters. In a user cluster, it has the rights of the
// cluster's kubeconfig. Fields without a comment are required.
type Reconciler struct {
	// Kubernetes options.
	Client   client.Client
	Recorder events.EventRecorder
	Clusters *cluster.Registry
	Secrets  *content.Reader
	HubID    string
	// SystemNamespace holds the KubernetesClusters that come before those of other namespaces.
	SystemNamespace string

	// Kubeconfigs says what a kubeconfig may hold beyond inline data. Default: nothing.
	Kubeconfigs cluster.KubeconfigOptions
	// ClusterSelector selects the KubernetesClusters that this process serves. Default: all.
	ClusterSelector labels.Selector
	// ConnectOnly engages clusters for the other controllers in this process, and writes nothing:
	// another process keeps the inventory.
	ConnectOnly bool
	// RemoteOnly refuses KubernetesClusters without a kubeconfig: the process has rights in one namespace of
	// the hub, and can install nothing here.
	RemoteOnly bool
	// Agent installs Waybill's own share of clusters that ask for it. Default: none is installed.
	Agent *agent.Installer
	// Drain lets its actions end before the process does. Default: their contexts are canceled with it.
	Drain *reconcile.Drain
	// Workers is how many KubernetesClusters are reconciled at a time. Default: 4.
	Workers int

	kernel *reconcile.Kernel
	waker  *reconcile.Waker[ctrl.Request]
	// jobs remove what is left in a cluster, or prove which one it is.
	jobs *reconcile.Jobs[reconcile.Key, error]
	// agents install, correct and uninstall Waybill's own share of a cluster.
	agents      *reconcile.Jobs[reconcile.Key, agent.Acted]
	engagements cluster.Engaged[types.NamespacedName, *engagement]
	kubeconfigs kubeconfigs
	claims      claims
	proofs      proofs
	crds        []crd
	// provider creates the installations that the hub chooses for clusters; nil if ConnectOnly.
	provider *provide.Provider
}

// Back-off of a KubernetesCluster that fails for a reason that no event will end.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// Reconcile updates the registry from the spec, and the status from the registry.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	kc := &v1alpha1.KubernetesCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, kc); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.serves(kc) {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if r.ConnectOnly {
		return ctrl.Result{}, r.connectOnly(ctx, kc)
	}
	if kc.DeletionTimestamp.IsZero() {
		if err := reconcile.AddFinalizer(ctx, r.Client, kc); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	pass := r.kernel.Begin(r.Client, r.Recorder, kc)
	s := &scope{kc: kc, key: req.NamespacedName, pass: pass}
	outcome, err := r.run(ctx, s)
	if err == nil && outcome.Released {
		return ctrl.Result{}, r.release(ctx, s)
	}
	r.provide(s)
	observeMetrics(kc)
	return pass.Finish(ctx, outcome, err)
}

// run takes the steps of a reconciliation, in order, until one sets an outcome or fails.
func (r *Reconciler) run(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if !s.kc.DeletionTimestamp.IsZero() {
		return r.remove(ctx, s)
	}
	if s.kc.Spec.Paused {
		return r.pause(s), nil
	}
	outcome, err := r.inventory(ctx, s)
	if failed := r.keepAgent(ctx, s); failed != nil {
		return reconcile.Outcome{}, failed
	}
	if s.agentAgain > 0 && (outcome.RequeueAfter == 0 || s.agentAgain < outcome.RequeueAfter) {
		outcome.RequeueAfter = s.agentAgain
	}
	return outcome, err
}

// inventory takes the steps that Ready is about.
func (r *Reconciler) inventory(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	for _, step := range []func(context.Context, *scope) error{
		r.connect,
		r.look,
		r.summarize,
		r.compare,
		r.judge,
	} {
		if err := step(ctx, s); err != nil {
			return reconcile.Outcome{}, err
		}
		if s.outcome != nil {
			return *s.outcome, nil
		}
	}
	return s.ready(), nil
}

// serves reports whether this process serves the KubernetesCluster.
func (r *Reconciler) serves(kc *v1alpha1.KubernetesCluster) bool {
	return r.ClusterSelector == nil || r.ClusterSelector.Matches(labels.Set(kc.Labels))
}

// pause disengages the cluster, so that nothing in this process can act on it. What is known of it
// stays in the status.
func (r *Reconciler) pause(s *scope) reconcile.Outcome {
	r.Clusters.Withhold(s.key, errPaused)
	r.kubeconfigs.forget(s.key)
	s.unknown(v1alpha1.SuspendedReason, pausedMessage)
	if s.kc.Spec.Agent != nil || s.kc.Status.Agent != nil {
		conditions.MarkUnknown(s.kc, v1alpha1.AgentReadyCondition, v1alpha1.SuspendedReason, pausedMessage)
	}
	return reconcile.Outcome{Unknown: v1alpha1.SuspendedReason, Message: pausedMessage}
}

// connectOnly engages the cluster, and reports nothing.
func (r *Reconciler) connectOnly(ctx context.Context, kc *v1alpha1.KubernetesCluster) error {
	s := &scope{kc: kc, key: client.ObjectKeyFromObject(kc)}
	if kc.Status.UID != "" {
		r.claims.forget(s.key) // the process that keeps the inventory has decided
	}
	if kc.Spec.Paused {
		r.pause(s)
		return nil
	}
	err := r.connect(ctx, s)
	if reconcile.IsStalled(err) {
		return nil // the process that keeps the inventory says so
	}
	if err != nil {
		return err
	}
	s.state, _ = r.Clusters.State(s.key)
	return r.recheck(ctx, s)
}

// forget drops all state of a KubernetesCluster that is gone, or is served by another process.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.Clusters.Remove(key)
	r.kubeconfigs.forget(key)
	r.claims.forget(key)
	r.proofs.forget(key)
	forgetMetrics(key)
}
