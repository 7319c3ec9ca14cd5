package kubernetesapplication

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication/placement"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/reconcile"
)

const defaultWorkers = 8

// gathering is how long changes of resources are gathered before their application is reconciled:
// an application with 200 templates is not reconciled 200 times while it is submitted.
const gathering = 200 * time.Millisecond

// Names of indexes. They are not field paths, so that other controllers can have their own indexes
// over the same fields.
const (
	// applicationIndex finds the resources of an application, including those that it created
	// before it was restored from a backup.
	applicationIndex = "application-controller/application"
	// clusterIndex finds the applications in a cluster, and under noCluster those in none.
	clusterIndex = "application-controller/cluster"
	// templateIndex finds the applications that have a template of a given name.
	templateIndex = "application-controller/template"
)

// noCluster is not a name that a cluster can have.
const noCluster = "-"

// SetupWithManager adds the controller to a manager. Must be called before the registry engages any
// cluster.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.kernel = reconcile.NewKernel(minBackoff, maxBackoff)
	r.waker = &reconcile.Waker[ctrl.Request]{}
	r.filters, r.scores = placement.DefaultFilters(), placement.DefaultScores()
	r.placements, r.reports = newPlacements(), &reports{}
	r.kinds = newKinds(r.wake)
	r.started = sync.OnceValue(time.Now)
	r.fill = sync.OnceValue(func() error { return r.placements.fill(ctx, r.Client) })
	r.Clusters.Subscribe(func(key types.NamespacedName, _ bool) { r.reached(ctx, key) })
	if err := index(ctx, mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("kubernetesapplication").
		For(&v1alpha1.KubernetesApplication{}, builder.WithPredicates(r.changed())).
		Watches(&v1alpha1.KubernetesApplicationResource{}, r.resourceEvents()).
		Watches(&v1alpha1.KubernetesCluster{}, r.clusterEvents()).
		WatchesRawSource(r.waker.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.Workers, defaultWorkers), RateLimiter: reconcile.NewLimiter()}).
		Complete(reconcile.Quiet(r))
}

func index(ctx context.Context, mgr ctrl.Manager) error {
	for _, i := range []struct {
		object  client.Object
		name    string
		extract client.IndexerFunc
	}{
		{&v1alpha1.KubernetesApplicationResource{}, applicationIndex, applicationOf},
		{&v1alpha1.KubernetesApplication{}, clusterIndex, clusterOf},
		{&v1alpha1.KubernetesApplication{}, templateIndex, templatesOf},
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, i.object, i.name, i.extract); err != nil {
			return err
		}
	}
	return nil
}

// applicationOf returns the name of the application that controls a resource or, if none does, of
// the one that its owner mark names.
func applicationOf(o client.Object) []string {
	if ref := metav1.GetControllerOf(o); ref != nil {
		if ref.Kind == v1alpha1.KubernetesApplicationKind && ref.APIVersion == v1alpha1.GroupVersion.String() {
			return []string{ref.Name}
		}
		return nil
	}
	owner, ok := apply.OwnerOf(o)
	if ok && owner.Kind == v1alpha1.KubernetesApplicationKind && owner.Namespace == o.GetNamespace() {
		return []string{owner.Name}
	}
	return nil
}

func clusterOf(o client.Object) []string {
	if name := o.(*v1alpha1.KubernetesApplication).Spec.ClusterName; name != "" {
		return []string{name}
	}
	return []string{noCluster}
}

func templatesOf(o client.Object) []string {
	templates := o.(*v1alpha1.KubernetesApplication).Spec.ResourceTemplates
	names := make([]string, 0, len(templates))
	for i := range templates {
		names = append(names, templates[i].Metadata.Name)
	}
	return names
}

// changed passes the changes that an application is reconciled for, and filters out our own writes:
// those of the status, and that of the chosen cluster.
func (r *Reconciler) changed() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*v1alpha1.KubernetesApplication), e.ObjectNew.(*v1alpha1.KubernetesApplication)
			return reconcile.Requested(was, is) || was.Generation != is.Generation && !r.scheduledNow(was, is)
		},
	}
}

// scheduledNow reports whether all that has changed is that we have chosen a cluster: the pass that
// chose it goes on without an event.
func (r *Reconciler) scheduledNow(was, is *v1alpha1.KubernetesApplication) bool {
	return is.Generation == was.Generation+1 && was.Spec.ClusterName == "" && is.Spec.ClusterName != "" &&
		is.DeletionTimestamp.IsZero() && r.placements.assumed(client.ObjectKeyFromObject(is), is.UID)
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// resourceEvents enqueues the application of a resource and, when a resource is deleted or gets
// another owner, the applications that want its name.
func (r *Reconciler) resourceEvents() handler.EventHandler {
	enqueue := func(q queue, o client.Object) {
		for _, name := range applicationOf(o) {
			q.AddAfter(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}, gathering)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if concerns(e.ObjectOld.(*v1alpha1.KubernetesApplicationResource), e.ObjectNew.(*v1alpha1.KubernetesApplicationResource)) {
				enqueue(q, e.ObjectNew)
			}
			if !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences()) {
				enqueue(q, e.ObjectOld)
				r.wakeAll(ctx, templateIndex, client.ObjectKeyFromObject(e.ObjectNew))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			enqueue(q, e.Object)
			r.wakeStrangers(ctx, e.Object)
		},
	}
}

// concerns reports whether an application has to be reconciled after a change of one of its
// resources. It does not read the status of the object in the cluster, which may change many times
// a second.
func concerns(was, is *v1alpha1.KubernetesApplicationResource) bool {
	return was.Generation != is.Generation ||
		was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
		!maps.Equal(was.Labels, is.Labels) ||
		!maps.Equal(was.Annotations, is.Annotations) ||
		!equality.Semantic.DeepEqual(was.OwnerReferences, is.OwnerReferences) ||
		was.Status.State != is.Status.State ||
		was.Status.ObservedGeneration != is.Status.ObservedGeneration ||
		says(was, v1alpha1.SubmittedCondition) != says(is, v1alpha1.SubmittedCondition) ||
		says(was, v1alpha1.ReadyCondition) != says(is, v1alpha1.ReadyCondition) ||
		says(was, v1alpha1.HeldCondition) != says(is, v1alpha1.HeldCondition)
}

// said is what a condition says, without its times.
type said struct {
	status          metav1.ConditionStatus
	reason, message string
}

func says(kar *v1alpha1.KubernetesApplicationResource, condition string) said {
	c := conditions.Get(kar, condition)
	if c == nil {
		return said{}
	}
	return said{status: c.Status, reason: c.Reason, message: c.Message}
}

// wakeStrangers enqueues the applications that want the name of a resource that is gone, except the
// one that it belonged to.
func (r *Reconciler) wakeStrangers(ctx context.Context, o client.Object) {
	own := applicationOf(o)
	for _, key := range r.find(ctx, templateIndex, client.ObjectKeyFromObject(o)) {
		if len(own) == 0 || own[0] != key.Name {
			r.wake(key)
		}
	}
}

// clusterEvents enqueues the applications of a cluster, and those that fit nowhere.
func (r *Reconciler) clusterEvents() handler.EventHandler {
	both := func(ctx context.Context, o client.Object) {
		key := client.ObjectKeyFromObject(o)
		r.wakeAll(ctx, clusterIndex, key)
		r.wakeWaiting(ctx, key.Namespace)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ queue) { both(ctx, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ queue) { both(ctx, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ queue) {
			switch was, is := e.ObjectOld, e.ObjectNew; {
			case was.GetGeneration() != is.GetGeneration():
				both(ctx, is)
			case !maps.Equal(was.GetLabels(), is.GetLabels()):
				r.wakeWaiting(ctx, is.GetNamespace())
			}
		},
	}
}

// reached is called when a cluster is engaged, lost or back.
func (r *Reconciler) reached(ctx context.Context, key types.NamespacedName) {
	if ctx.Err() != nil {
		return
	}
	r.wakeAll(ctx, clusterIndex, key)
	r.wakeWaiting(ctx, key.Namespace)
}

func (r *Reconciler) wake(key types.NamespacedName) {
	r.waker.Wake(ctrl.Request{NamespacedName: key})
}

// wakeWaiting enqueues the applications of a namespace that have no cluster.
func (r *Reconciler) wakeWaiting(ctx context.Context, namespace string) {
	r.wakeAll(ctx, clusterIndex, types.NamespacedName{Namespace: namespace, Name: noCluster})
}

// wakeAll enqueues the applications in the namespace of an object that an index finds by the name
// of the object.
func (r *Reconciler) wakeAll(ctx context.Context, index string, key types.NamespacedName) {
	for _, found := range r.find(ctx, index, key) {
		r.wake(found)
	}
}

func (r *Reconciler) find(ctx context.Context, index string, key types.NamespacedName) []types.NamespacedName {
	list := &v1alpha1.KubernetesApplicationList{}
	err := r.Client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{index: key.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list applications")
		return nil
	}
	keys := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return keys
}
