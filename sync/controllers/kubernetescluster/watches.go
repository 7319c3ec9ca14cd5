package kubernetescluster

import (
	"cmp"
	"context"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
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
	"waybill.dev/waybill/sync/controllers/kubernetescluster/agent"
	"waybill.dev/waybill/sync/reconcile"
)

const defaultWorkers = 4

const (
	// secretIndex finds the KubernetesClusters that name a Secret.
	secretIndex = "spec.kubeconfigSecretRef.name"
	// uidIndex finds the KubernetesClusters that lead to one cluster.
	uidIndex = "status.uid"
)

// SetupWithManager adds the controller to a manager. ctx bounds the jobs that run beside the
// workers. It must be called before the registry engages anything, and before other controllers add
// functions of their own to OnEngage: those may rely on the CRDs being there.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	crds, err := loadCRDs(isInstalled)
	if err != nil {
		return err
	}
	r.crds = crds
	r.kernel = reconcile.NewKernel(minBackoff, maxBackoff)
	r.waker = &reconcile.Waker[ctrl.Request]{}
	r.jobs = reconcile.NewJobs[reconcile.Key, error](ctx, 1, func(k reconcile.Key) { r.wake(k.NamespacedName) },
		func(err error) error { return err })
	r.agents = reconcile.NewJobs[reconcile.Key, agent.Acted](ctx, 1, func(k reconcile.Key) { r.wake(k.NamespacedName) },
		func(err error) agent.Acted { return agent.Acted{Err: err} }).DrainedBy(r.Drain)
	indexes := map[string]client.IndexerFunc{secretIndex: secretName, uidIndex: uid}
	for field, extract := range indexes {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.KubernetesCluster{}, field, extract); err != nil {
			return err
		}
	}
	r.Clusters.Guard(r.guard)
	r.Clusters.OnEngage(r.engage)
	r.Clusters.Subscribe(func(key types.NamespacedName, _ bool) { r.wake(key) })
	if err := r.setUpProvider(ctx, mgr); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("kubernetescluster").
		For(&v1alpha1.KubernetesCluster{}, builder.WithPredicates(changed())).
		Watches(&v1alpha1.KubernetesCluster{}, handler.EnqueueRequestsFromMapFunc(r.twins), builder.WithPredicates(moved())).
		WatchesMetadata(content.Metadata(content.Secret), handler.EnqueueRequestsFromMapFunc(r.namingSecret)).
		WatchesRawSource(r.waker.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.Workers, defaultWorkers), RateLimiter: reconcile.NewLimiter()})
	if !r.ConnectOnly {
		b = b.Watches(&v1alpha1.GitSync{}, handler.EnqueueRequestsFromMapFunc(r.leftBy)).
			Watches(&v1alpha1.KubernetesApplication{}, handler.EnqueueRequestsFromMapFunc(r.left), builder.WithPredicates(gone())).
			Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(r.left), builder.WithPredicates(gone()))
	}
	return b.Complete(reconcile.Quiet(r))
}

// changed lets through the changes that a KubernetesCluster is reconciled for, but not the
// controller's own status writes.
func changed() predicate.Predicate {
	return predicate.Or[client.Object](reconcile.Changed(), predicate.LabelChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
			return was[v1alpha1.AcceptClusterUIDAnnotation] != is[v1alpha1.AcceptClusterUIDAnnotation] ||
				was[v1alpha1.InitialInstallationsAnnotation] != is[v1alpha1.InitialInstallationsAnnotation]
		},
	})
}

// moved lets through the changes that decide which of several KubernetesClusters drives a cluster, and
// of what the others know from it.
func moved() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			older, newer := e.ObjectOld.(*v1alpha1.KubernetesCluster), e.ObjectNew.(*v1alpha1.KubernetesCluster)
			return older.Status.UID != newer.Status.UID || older.Status.Store != newer.Status.Store || !maps.Equal(older.Status.Definitions, newer.Status.Definitions) ||
				!apiequality.Semantic.DeepEqual(older.Status.Provided, newer.Status.Provided)
		},
	}
}

func secretName(o client.Object) []string {
	if ref := o.(*v1alpha1.KubernetesCluster).Spec.KubeconfigSecretRef; ref != nil {
		return []string{ref.Name}
	}
	return nil
}

func uid(o client.Object) []string {
	if uid := o.(*v1alpha1.KubernetesCluster).Status.UID; uid != "" {
		return []string{uid}
	}
	return nil
}

func (r *Reconciler) namingSecret(ctx context.Context, secret client.Object) []ctrl.Request {
	list := &v1alpha1.KubernetesClusterList{}
	err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace()),
		client.MatchingFields{secretIndex: secret.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list KubernetesClusters that name a Secret")
		return nil
	}
	requests := make([]ctrl.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// leftBy returns the KubernetesClusters whose deletion a GitSync may block.
func (r *Reconciler) leftBy(ctx context.Context, o client.Object) []ctrl.Request {
	var requests []ctrl.Request
	for _, c := range o.(*v1alpha1.GitSync).Status.Clusters {
		key := types.NamespacedName{Namespace: o.GetNamespace(), Name: c.Name}
		kc := &v1alpha1.KubernetesCluster{}
		if c.Name == "" || r.Client.Get(ctx, key, kc) != nil || kc.DeletionTimestamp.IsZero() {
			continue
		}
		requests = append(requests, ctrl.Request{NamespacedName: key})
	}
	return requests
}
