package applicationdefinition

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationdefinitions,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationdefinitions/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler maintains the catalog. In a user cluster it has the permissions of the cluster's
// kubeconfig. Fields without a comment are required.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Clusters *cluster.Registry
	HubID    string
	// SystemNamespace holds the schemas of values, here and in user clusters.
	SystemNamespace string

	// Workers is how many definitions are reconciled at a time. Default: 4.
	Workers int

	kernel *reconcile.Kernel
	waker  *reconcile.Waker[ctrl.Request]
	// copiers maintain the copies in each cluster, by its name.
	copiers cluster.Engaged[types.NamespacedName, *copier]
	offers  offers
	// started is when the first definition was reconciled.
	started func() time.Time
	// ended reports whether the process is about to end.
	ended func() bool
}

// Back-off of a definition that fails for a reason that no event will resolve.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// Reconcile hands a definition to the copiers, and reports their progress.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	definition := &v1alpha1.ApplicationDefinition{}
	if err := r.Client.Get(ctx, req.NamespacedName, definition); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(req.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !definition.InCatalog() {
		return ctrl.Result{}, nil // a copy of another hub, which says what that one offers to this cluster
	}
	if definition.DeletionTimestamp.IsZero() {
		if err := reconcile.AddFinalizer(ctx, r.Client, definition); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	pass := r.kernel.Begin(r.Client, r.Recorder, definition)
	s := &scope{definition: definition}
	outcome, err := r.run(ctx, s)
	if err == nil && outcome.Released {
		return ctrl.Result{}, r.release(ctx, definition)
	}
	observeMetrics(definition)
	return pass.Finish(ctx, outcome, err)
}

// run executes the steps of a pass in order, until one fails or ends the pass.
func (r *Reconciler) run(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	for _, step := range []func(context.Context, *scope) error{
		r.loadClusters,
		r.rollUp,
		r.offer,
		r.remove,
		r.judge,
	} {
		if err := step(ctx, s); err != nil {
			return reconcile.Outcome{}, err
		}
		if s.outcome != nil {
			break
		}
	}
	if s.outcome == nil {
		return reconcile.Outcome{}, nil
	}
	return *s.outcome, nil
}

// scope holds the state that the steps of one pass share.
type scope struct {
	// definition is the object of the pass; steps write its status.
	definition *v1alpha1.ApplicationDefinition
	// clusters are all KubernetesClusters, set by loadClusters. They are from a cache and must not
	// be modified.
	clusters []v1alpha1.KubernetesCluster
	// offer is what the clusters get. It is set by offer.
	offer *offer
	// outcome ends the pass if a step has set it.
	outcome *reconcile.Outcome
}

// loadClusters reads the inventory of clusters.
func (r *Reconciler) loadClusters(ctx context.Context, s *scope) error {
	list := &v1alpha1.KubernetesClusterList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	s.clusters = list.Items
	return nil
}

// offer hands the definition to the copiers if it has changed since that was done last.
func (r *Reconciler) offer(_ context.Context, s *scope) error {
	made, err := r.offers.of(s.definition, r.HubID)
	if err != nil {
		return reconcile.Stalled(v1alpha1.InvalidSpecReason, "%w", err)
	}
	s.offer = made
	s.definition.Status.Versions = made.versions
	if r.offers.hand(s.definition.Name, made) {
		r.look(s.definition.Name)
	}
	return nil
}

// forget has the copies of a definition that is gone deleted.
func (r *Reconciler) forget(name string) {
	if r.offers.forget(name) {
		r.look(name)
	}
	forgetMetrics(name)
}
