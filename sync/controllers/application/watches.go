package application

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/controllers/application/healthcache"
	"waybill.dev/waybill/sync/controllers/application/ownership"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/reconcile"
)

// defaultWorkers is high because a pass is a moment of work and the wait for one write: the slower
// the API server answers, the more must wait at a time for changes not to queue up here.
const defaultWorkers = 64

// SetupWithManager adds the controller to a manager. ctx ends the watches of components.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.kernel = reconcile.NewKernel(minBackoff, maxBackoff)
	// What we patch is made of our own types, so there are no unknown fields for the API server to
	// look for. Pods are made of what users wrote.
	r.patches = client.WithFieldValidation(r.Client, metav1.FieldValidationIgnore)
	r.waker = &reconcile.Waker[ctrl.Request]{}
	wake := func(key types.NamespacedName) { r.waker.Wake(ctrl.Request{NamespacedName: key}) }
	r.throttle = newThrottle(wake)
	r.index = newIndex()
	r.owners = ownership.NewOwners()
	r.tracker = tracker.New(ctx, r.Cluster, tracker.Options{
		Annotations: []string{v1alpha1.ApplicationAnnotation, v1alpha1.InjectedAnnotation},
		Index:       found,
		Changed:     r.objectChanged,
		KindChanged: func(gk schema.GroupKind) { r.wakeAll(r.tracker.Wanting(gk)) },
		Linger:      r.Linger,
	})
	r.health = healthcache.New(ctx, r.Cluster, healthcache.Options{
		Changed: r.healthChanged, Count: r.tracker.Count, Missing: r.tracker.Missing,
	})
	r.keeper = ownership.New(ownership.Options{
		Owners: r.owners, Tracker: r.tracker, Metadata: r.Cluster.Metadata(), Changed: r.throttle.soon,
	})
	health.OnChange(ctx, func(func(schema.GroupKind) bool) { r.wakeAll(r.index.keys()) })
	r.pods = newPods(ctx, r.Cluster, wake, r.throttle.soon)
	r.filled = make(chan struct{})
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return r.keep(ctx, mgr.GetCache()) })); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("application").
		For(&v1alpha1.Application{}, builder.WithPredicates(changed())).
		WatchesRawSource(r.waker.Source()).
		WatchesRawSource(&prerequisite{met: r.filled}).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.Workers, defaultWorkers), RateLimiter: reconcile.NewLimiter()}).
		Complete(reconcile.Quiet(r))
}

// keep follows all Applications. Once all are known, it lets them be reconciled, and starts marking
// and owning their objects.
func (r *Reconciler) keep(ctx context.Context, from cache.Cache) error {
	_, followed, err := watch.Handle(ctx, from, &v1alpha1.Application{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.observe(o.(*v1alpha1.Application)) },
		UpdateFunc: func(_, o any) { r.observe(o.(*v1alpha1.Application)) },
		DeleteFunc: func(o any) {
			if app, ok := watch.Deleted(o).(*v1alpha1.Application); ok {
				r.vanish(client.ObjectKeyFromObject(app), app.UID)
			}
		},
	})
	if err != nil {
		return err
	}
	if toolscache.WaitForCacheSync(ctx.Done(), followed.HasSynced) {
		close(r.filled)
		r.keeper.Run(ctx)
	}
	return nil
}

// prerequisite is a source without events that holds back the workers of a controller until met is
// closed.
type prerequisite struct{ met <-chan struct{} }

// Start implements source.Source.
func (p *prerequisite) Start(context.Context, workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	return nil
}

// WaitForSync implements source.SyncingSource.
func (p *prerequisite) WaitForSync(ctx context.Context) error {
	select {
	case <-p.met:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// changed passes the changes that an Application is reconciled for, and filters out its own status
// writes.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			!equality.Semantic.DeepEqual(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) ||
			reconcile.Requested(e.ObjectOld, e.ObjectNew)
	}}
}

// found returns the keys that the tracker finds an object by: the Application that it names, and
// those that it refers to as owners.
func found(o *tracker.Object) []string {
	var keys []string
	if name := o.Annotations[v1alpha1.ApplicationAnnotation]; name != "" {
		keys = append(keys, annotationKey(types.NamespacedName{Namespace: o.Namespace, Name: name}))
	}
	for _, owner := range o.Owners {
		if ownership.IsApplication(owner) {
			keys = append(keys, ownerKey(o.Namespace, owner.UID))
		}
	}
	return keys
}

// objectChanged handles a change of an object, and enqueues the Applications that it belongs to,
// belonged to, or is listed by.
func (r *Reconciler) objectChanged(before, after *tracker.Object) {
	object := after
	if after == nil {
		object = before
		r.health.Forget(before.Ref)
	}
	r.keeper.Look(object.Ref)
	if after != nil {
		r.examine(after)
		if before != nil && before.Alike(after) {
			return // at most its health has changed, which the health cache reports
		}
	}
	concerned := sets.New(r.index.listers(object.Ref)...)
	for _, o := range []*tracker.Object{before, after} {
		if o != nil {
			concerned.Insert(applicationsOf(o)...)
		}
	}
	r.wakeAll(concerned.UnsortedList())
}

// applicationsOf returns the Applications that an object names, as its own or as its owner.
func applicationsOf(o *tracker.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	if name := o.Annotations[v1alpha1.ApplicationAnnotation]; name != "" {
		keys = append(keys, types.NamespacedName{Namespace: o.Namespace, Name: name})
	}
	for _, owner := range o.Owners {
		if ownership.IsApplication(owner) {
			keys = append(keys, types.NamespacedName{Namespace: o.Namespace, Name: owner.Name})
		}
	}
	return keys
}

// examine requests the health of an object if it is a component.
func (r *Reconciler) examine(o *tracker.Object) {
	name := o.Annotations[v1alpha1.ApplicationAnnotation]
	if name == "" {
		return
	}
	e := r.index.get(types.NamespacedName{Namespace: o.Namespace, Name: name})
	if e != nil && e.member != nil && e.member.Matches(o.GroupKind, o.GetObjectMeta()) {
		r.healthOf(e, o)
	}
}

// healthOf returns the health of a component as far as it is known, and false if it is not known at
// all.
func (r *Reconciler) healthOf(e *entry, o *tracker.Object) (healthcache.Result, bool) {
	expression := e.expressions[o.GroupKind]
	if o.Deleting || expression == nil && !health.HasStatus(o.GroupKind) {
		status, message := health.OfMetadata(o.Deleting)
		return healthcache.Result{Status: status, Message: message}, true
	}
	resource := r.tracker.State(o.GroupKind).Resource
	result, known := r.health.Get(healthcache.Query{Ref: o.Ref, Resource: resource, UID: o.UID, Version: o.Version, Expression: expression})
	if r.tracker.Get(o.Ref) == nil {
		r.health.Forget(o.Ref) // it has gone meanwhile, and no event will drop it
	}
	return result, known
}

// healthChanged enqueues the Application of an object.
func (r *Reconciler) healthChanged(ref tracker.Ref) {
	if o := r.tracker.Get(ref); o != nil {
		r.wakeAll(applicationsOf(o))
	}
}

func (r *Reconciler) wakeAll(keys []types.NamespacedName) {
	for _, key := range keys {
		r.throttle.soon(key)
	}
}
