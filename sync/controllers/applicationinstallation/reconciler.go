package applicationinstallation

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/sync/source/subscription"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationdefinitions;kubernetesclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesclusters/status,verbs=patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationrollbacks;applicationsnapshots,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler drives the installations of every cluster that the registry engages. In a user cluster
// it may do what the cluster's kubeconfig may do; admission there has checked that the author of an
// installation may have it.
type Reconciler struct {
	// Hub reads definitions and KubernetesClusters from a cache, and writes the status of the latter.
	Hub      client.Client
	Clusters *cluster.Registry
	// Secrets reads the credentials of sources on the hub; they never leave it.
	Secrets *content.Reader
	HubID   string

	// Sources, which only the hub's side contacts.
	Git    *git.Store
	Charts *chart.Cache
	// Renders renders folders. Default: slots of its own, in which kustomizations are built in this
	// process.
	Renders *render.Slots
	// Templates renders charts. Default: this process does, which their authors can make take any memory.
	Templates release.Renderer

	// Drain lets actions end before the process does. Default: they are cancelled with it.
	Drain *reconcile.Drain
	// SystemNamespace holds the credentials of sources.
	SystemNamespace string
	// CredentialsOfCluster: they are read from the namespace of each KubernetesCluster instead, where they
	// are copies of those in the system namespace.
	CredentialsOfCluster bool
	// DefaultServiceAccount is the ServiceAccount of their namespaces that installations act as where
	// neither they nor their definitions name one. Default: none, Waybill's own identity.
	DefaultServiceAccount string
	// Workers is how many installations are reconciled at a time in each cluster. Default: 4.
	Workers int
	// Actions is how many Helm actions and applies run at a time in each cluster. Default: 10.
	Actions int

	fetches *subscription.Pool[jobKey, prepared]
	// memo is that of the releases of all clusters.
	memo *release.Memo
	// drivers has the driver of each cluster, by name.
	drivers cluster.Engaged[types.NamespacedName, *driver]
	// changing is held while the driver of a cluster changes.
	changing sync.Mutex
}

// driver is the controller of one cluster.
type driver struct {
	*Reconciler

	cluster  *cluster.Cluster
	client   client.Client
	recorder events.EventRecorder
	applier  *apply.Applier
	// values reads the objects that valuesFrom names.
	values *content.Reader

	kernel   *reconcile.Kernel
	waker    *reconcile.Waker[ctrl.Request]
	sessions reconcile.Sessions[types.UID, session]
	// met has the UID of each installation that passes have seen.
	met reconcile.Sessions[types.NamespacedName, types.UID]
	// waits has the installations that wait for others.
	waits     *waits
	snapshots *metadataWatch
	// holders watches who holds installations.
	holders *holders
	acts    *reconcile.Jobs[jobKey, acted]
	methods map[v1alpha1.Method]method
	// watching has the kinds that installations take values from.
	watching map[content.Kind]*metadataWatch
	// begun is what the hub keeps of what was installed in the cluster.
	begun begun
	// told counts the changes that others made to what an installation installed.
	told *reconcile.Bell[types.NamespacedName]
	// inventories keeps what does not fit into a status.
	inventories *inventory.Store
}

// Backoff of an installation that fails for a reason that no event will end.
const (
	minBackoff = 2 * time.Second
	maxBackoff = 10 * time.Minute
)

// Reconcile brings one installation of the cluster to what its spec says.
func (d *driver) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	inst := &v1alpha1.ApplicationInstallation{}
	if err := d.client.Get(ctx, req.NamespacedName, inst); err != nil {
		if apierrors.IsNotFound(err) {
			d.forget(req.NamespacedName)
			d.holders.leave(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	d.meet(inst)
	deleting := !inst.DeletionTimestamp.IsZero()
	if deleting && !controllerutil.ContainsFinalizer(inst, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	if !deleting {
		if err := reconcile.AddFinalizer(ctx, d.client, inst); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	pass := d.kernel.Begin(d.client, d.recorder, inst)
	s := &scope{
		inst: inst, pass: pass, now: time.Now(), lost: d.cluster.Reachable(), told: d.told.Rings(req.NamespacedName), session: d.session(inst), owner: d.owner(inst),
	}
	s.looked = s.session.source.State()
	outcome, err := d.run(ctx, s)
	if err == nil && outcome.Released {
		return ctrl.Result{}, d.release(ctx, s)
	}
	failure := err
	result, err := pass.Finish(ctx, outcome, failure)
	observeMetrics(d.cluster, inst, failure)
	if err == nil {
		err = d.keptInventory(ctx, s)
	}
	return result, err
}

// run performs the steps of a pass in order, until one has nothing more to do before an event.
func (d *driver) run(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if !s.inst.DeletionTimestamp.IsZero() {
		return d.uninstall(ctx, s)
	}
	for _, step := range []func(context.Context, *scope) error{
		d.restore,
		d.want,
		d.heed,
		d.order,
		d.recordIntent,
		d.act,
	} {
		if err := step(ctx, s); err != nil {
			return s.failed(err)
		}
		if s.pending {
			return reconcile.Outcome{Pending: true}, nil
		}
	}
	return d.report(s)
}

// owner returns the owner that the objects of an installation are marked with.
func (d *driver) owner(inst *v1alpha1.ApplicationInstallation) apply.Owner {
	return apply.Owner{HubID: d.HubID, Kind: v1alpha1.ApplicationInstallationKind, Namespace: inst.Namespace, Name: inst.Name}
}
