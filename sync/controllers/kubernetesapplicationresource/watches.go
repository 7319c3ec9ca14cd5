package kubernetesapplicationresource

import (
	"cmp"
	"context"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	defaultWorkers        = 8
	defaultJobsPerCluster = 10
)

// Names of indexes of resources. They are not field paths, so that other controllers can have their
// own indexes over the same fields.
const (
	// clusterIndex finds the resources that go to a cluster.
	clusterIndex = "resource-controller/cluster"
	// secretIndex finds the resources that name a Secret, or of which a copy may still be there.
	secretIndex = "resource-controller/secret"
	// endingIndex finds the resources of an application that are being deleted.
	endingIndex = "resource-controller/ending"
)

// SetupWithManager adds the controller to a manager. ctx ends the jobs beside the workers.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.direct = mgr.GetAPIReader()
	r.kernel = reconcile.NewKernel(minBackoff, maxBackoff)
	r.waker = &reconcile.Waker[ctrl.Request]{}
	r.deliveries = delivery.NewPool(ctx, delivery.Options{
		Width:     cmp.Or(r.JobsPerCluster, defaultJobsPerCluster),
		Wake:      func(owner apply.Owner) { r.waker.Wake(ctrl.Request{NamespacedName: owner.ObjectKey()}) },
		Backoff:   r.kernel.Backoff,
		Drain:     r.Drain,
		Status:    r.isOurs,
		LookEvery: unwatchedInterval,
	})
	r.Clusters.Subscribe(func(key types.NamespacedName, _ bool) { r.wakeAllOf(ctx, key) })
	for field, extract := range map[string]client.IndexerFunc{clusterIndex: clusterName, secretIndex: secretNames, endingIndex: endingOf} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.KubernetesApplicationResource{}, field, extract); err != nil {
			return err
		}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("kubernetesapplicationresource").
		For(&v1alpha1.KubernetesApplicationResource{}, builder.WithPredicates(changed())).
		Watches(&v1alpha1.KubernetesApplication{}, r.enqueue(endingIndex), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.KubernetesCluster{}, r.enqueue(clusterIndex), builder.WithPredicates(clusterChanged())).
		Watches(&v1alpha1.KubernetesCluster{}, handler.EnqueueRequestsFromMapFunc(r.namingKubeconfig), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(content.Metadata(content.Secret), r.enqueue(secretIndex)).
		WatchesRawSource(r.waker.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.Workers, defaultWorkers), RateLimiter: reconcile.NewLimiter()}).
		Complete(reconcile.Quiet(r))
}

// isOurs reports whether an owner of delivered objects is a resource of this hub.
func (r *Reconciler) isOurs(owner apply.Owner) bool {
	return owner.HubID == r.HubID && owner.Kind == v1alpha1.KubernetesApplicationResourceKind
}

// changed passes the changes that a resource is reconciled for, and filters out its own status
// writes.
func changed() predicate.Predicate {
	return predicate.Or[client.Object](reconcile.Changed(), predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld, e.ObjectNew
			return was.GetAnnotations()[v1alpha1.AdoptAnnotation] != is.GetAnnotations()[v1alpha1.AdoptAnnotation] ||
				!equality.Semantic.DeepEqual(was.GetOwnerReferences(), is.GetOwnerReferences())
		},
	})
}

// clusterChanged passes the changes that decide whether a cluster is delivered to, and what is
// reported about one that cannot be.
func clusterChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*v1alpha1.KubernetesCluster), e.ObjectNew.(*v1alpha1.KubernetesCluster)
			return conditions.IsReady(was) != conditions.IsReady(is) ||
				conditions.GetMessage(was, v1alpha1.ReadyCondition) != conditions.GetMessage(is, v1alpha1.ReadyCondition)
		},
	})
}

func clusterName(o client.Object) []string {
	if name := o.(*v1alpha1.KubernetesApplicationResource).Spec.ClusterName; name != "" {
		return []string{name}
	}
	return nil
}

func secretNames(o client.Object) []string {
	kar := o.(*v1alpha1.KubernetesApplicationResource)
	names := (&scope{kar: kar}).dropped()
	for _, ref := range kar.Spec.Secrets {
		names = append(names, ref.Name)
	}
	return names
}

func endingOf(o client.Object) []string {
	if owner := metav1.GetControllerOf(o); owner != nil && o.GetDeletionTimestamp() != nil {
		return []string{owner.Name}
	}
	return nil
}

// enqueue enqueues the resources in the namespace of an object that an index finds by the name of
// the object.
func (r *Reconciler) enqueue(index string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		return r.find(ctx, index, client.ObjectKeyFromObject(o))
	})
}

// namingKubeconfig returns the resources that name the Secret of a KubernetesCluster.
func (r *Reconciler) namingKubeconfig(ctx context.Context, o client.Object) []ctrl.Request {
	ref := o.(*v1alpha1.KubernetesCluster).Spec.KubeconfigSecretRef
	if ref == nil {
		return nil
	}
	return r.find(ctx, secretIndex, types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name})
}

// wakeAllOf enqueues the resources of a cluster that is lost or back.
func (r *Reconciler) wakeAllOf(ctx context.Context, cluster types.NamespacedName) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, request := range r.find(ctx, clusterIndex, cluster) {
		r.waker.Wake(request)
	}
}

func (r *Reconciler) find(ctx context.Context, index string, key types.NamespacedName) []ctrl.Request {
	found := &v1alpha1.KubernetesApplicationResourceList{}
	err := r.Client.List(ctx, found, client.InNamespace(key.Namespace), client.MatchingFields{index: key.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list resources")
		return nil
	}
	requests := make([]ctrl.Request, 0, len(found.Items))
	for i := range found.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&found.Items[i])})
	}
	return requests
}
