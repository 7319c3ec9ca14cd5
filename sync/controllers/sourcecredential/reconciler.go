package sourcecredential

import (
	"context"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/reconcile"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationdefinitions;kubernetesclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesclusters/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;patch;delete

// Reconciler copies source credentials. In a seed it has the permissions of the seed's kubeconfig. Fields
// without a comment are required.
type Reconciler struct {
	Client   client.Client
	Clusters *cluster.Registry
	// Secrets reads those of the hub.
	Secrets *content.Reader
	HubID   string
	// SystemNamespace holds the originals, and the copies in seeds.
	SystemNamespace string
	// ToNamespaces: the namespaces of KubernetesClusters get copies as well. If it is false, copies that
	// are there from before are deleted.
	ToNamespaces bool

	// metadata has that of the hub's Secrets.
	metadata cache.Cache
	waker    *reconcile.Waker[ctrl.Request]
	// kernel says when what others keep changing is corrected.
	kernel *reconcile.Kernel
	// seeds keep the copies in each seed, and local those in the hub itself.
	seeds cluster.Engaged[types.NamespacedName, *copier]
	local *copier
}

// Back-off of a copy that fails for a reason that no event will resolve.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// Reconcile writes what became of the copies for a KubernetesCluster to its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	kc := &v1alpha1.KubernetesCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, kc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !kc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	found := r.judge(kc)
	if found.pending {
		return ctrl.Result{}, nil // its copies enqueue it
	}
	err := reconcile.WriteConditions(ctx, r.Client, kc, func() {
		if found.status == "" {
			conditions.Delete(kc, v1alpha1.CredentialsCopiedCondition)
			return
		}
		found.set(kc)
	})
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
