package application

import (
	"context"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/controllers/application/healthcache"
	"waybill.dev/waybill/sync/controllers/application/ownership"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/reconcile"
)

// Rights on the kinds that Applications list are not for the code to say: they are a value of
// the chart.
//
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applications,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applications/status,verbs=get;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applications/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles the Applications of the cluster that it runs in, or of the one it is given.
// Fields without a comment are required.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	// Cluster that the Applications and their components live in.
	Cluster *cluster.Cluster
	// Workers is how many Applications are reconciled at a time. Default: 64.
	Workers int
	// Linger is how long a kind is still watched after the last Application that lists it is gone.
	// Default: a minute.
	Linger time.Duration

	// observing is held while an Application is recorded in the index and in what depends on it, so
	// that all of them end with the same state.
	observing sync.Mutex
	// filled is closed when the index holds all Applications: none is reconciled before that.
	filled chan struct{}

	// patches is the client for our own patches.
	patches  client.Client
	kernel   *reconcile.Kernel
	waker    *reconcile.Waker[ctrl.Request]
	throttle *throttle
	index    *index
	owners   *ownership.Owners
	keeper   *ownership.Keeper
	tracker  *tracker.Tracker
	health   *healthcache.Cache
	pods     *pods
}

// Backoff of an Application that fails for a reason that no event will end.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// Reconcile writes what is known of an Application into its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &v1alpha1.Application{}
	if err := r.Client.Get(ctx, req.NamespacedName, app); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.vanish(req.NamespacedName, "")
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	unheld := r.hold(ctx, app)
	if unheld != nil && refusal(unheld) == "" {
		return ctrl.Result{}, r.outdated(req.NamespacedName, unheld)
	}
	s := &scope{app: app, key: req.NamespacedName, entry: r.observe(app), unheld: unheld}
	s.pass = r.kernel.Begin(r.patches, r.Recorder, app)
	before := app.ResourceVersion
	outcome, err := r.run(ctx, s)
	if err == nil && outcome.Released {
		return ctrl.Result{}, r.outdated(req.NamespacedName, r.release(ctx, app))
	}
	result, err := s.pass.Finish(ctx, outcome, err)
	if app.ResourceVersion != before {
		r.throttle.wrote(s.key, sizeOf(app.Status.Components))
	}
	r.forgetFormer(s.key, app.UID)
	if err != nil || outcome.Pending {
		return result, err
	}
	observeMetrics(app)
	r.record(s)
	return result, r.outdated(req.NamespacedName, r.letGo(ctx, app))
}

// outdated schedules a retry for a write that was rejected because the object was modified
// concurrently, or because the cache does not have our own last write yet.
func (r *Reconciler) outdated(key types.NamespacedName, err error) error {
	if apierrors.IsConflict(err) {
		r.throttle.soon(key)
		return nil
	}
	return client.IgnoreNotFound(err)
}

// run performs the steps of a pass.
func (r *Reconciler) run(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	deleting := !s.app.DeletionTimestamp.IsZero()
	if deleting && s.entry.member == nil { // without a selector nothing was ever owned
		return reconcile.Outcome{Pending: true, Released: holds(s.app)}, nil
	}
	if s.entry.err != nil && !deleting {
		conditions.MarkFalse(s.app, v1alpha1.ComponentsReadyCondition, v1alpha1.InvalidSpecReason, "%s", s.entry.err)
		return reconcile.Outcome{}, reconcile.Stalled(v1alpha1.InvalidSpecReason, "%w", s.entry.err)
	}
	if s.unheld != nil {
		return s.refusedToHold()
	}
	before := s.app.Status.DeepCopy()
	r.survey(s)
	if deleting {
		s.app.Status = *before
		return r.remove(ctx, s)
	}
	r.checkDependencies(s)
	r.checkHealth(ctx, s)
	later := reconcile.Outcome{Pending: true, RequeueAfter: s.requeueAfter}
	if s.pending() { // nothing is written before everything is known
		s.app.Status = *before
		return later, nil
	}
	if r.holdsBack(s, before) {
		s.app.Status = *before
		r.record(s) // what the status waits for may need it in a process that has just started
		return later, nil
	}
	if r.throttle.impatient(s.key) {
		s.leaving = nil // what has not left by now speaks against the Application
	}
	s.summarize()
	return s.judge()
}

// holdsBack reports whether nothing is written yet because objects are about to be written by us:
// otherwise a change would be two statuses whenever the API server is slow, of which the first says
// of what is well that it is not. The status of a new spec is not held back, because there are no
// ownerReferences before it, and neither is the readiness that it mirrors.
func (r *Reconciler) holdsBack(s *scope, before *v1alpha1.ApplicationStatus) bool {
	named := sets.New[schema.GroupKind]()
	for _, c := range before.Components {
		named.Insert(schema.GroupKind{Group: c.Group, Kind: c.Kind})
	}
	known := before.ObservedGeneration == s.app.Generation && named.IsSuperset(s.entry.listed)
	return r.throttle.hold(s.key, s.settling && known && before.Ready == s.app.Status.Ready)
}

// record allows ownerReferences for the kinds that the status now names.
func (r *Reconciler) record(s *scope) {
	if s.entry.err != nil || s.entry.deleting || !holds(s.app) {
		return
	}
	if r.owners.Record(s.app.UID, wantedKinds(s.app)) {
		r.lookAfter(s.key, nil, s.entry)
	}
}

// observe records the current state of an Application, which may change which objects belong to it.
func (r *Reconciler) observe(app *v1alpha1.Application) *entry {
	r.observing.Lock()
	defer r.observing.Unlock()
	key := client.ObjectKeyFromObject(app)
	before, after := r.index.put(key, app)
	if before == after {
		return after
	}
	if before != nil && before.uid != after.uid {
		r.kernel.Forget(before.uid)
		r.pods.forget(before.uid)
		r.throttle.soon(key)
	}
	r.tracker.Want(key, after.wanted)
	if after.member == nil {
		r.owners.Delete(key)
	} else {
		r.owners.Set(after.member)
	}
	r.lookAfter(key, before, after)
	if before == nil || before.uid != after.uid || before.deleting != after.deleting || before.generation != after.generation {
		r.wakeAll(r.index.dependents(key))
	}
	return after
}

// vanish records that an Application is gone; uid says which one, because there may be another of
// the same name by now.
func (r *Reconciler) vanish(key types.NamespacedName, uid types.UID) {
	r.observing.Lock()
	defer r.observing.Unlock()
	if now := r.index.get(key); now != nil && uid != "" && now.uid != uid {
		return
	}
	before := r.index.remove(key)
	// Also when it is known to be gone: a pass may have ended since, and set them again.
	forgetMetrics(key)
	r.throttle.forget(key)
	if before == nil {
		return
	}
	r.kernel.Forget(before.uid)
	r.pods.forget(before.uid)
	r.owners.Delete(key)
	r.lookAfter(key, before, nil)
	r.tracker.Want(key, nil)
	r.wakeAll(r.index.dependents(key))
}

// forgetFormer drops what a pass has left of an Application that went during the pass.
func (r *Reconciler) forgetFormer(key types.NamespacedName, uid types.UID) {
	if now := r.index.get(key); now == nil || now.uid != uid {
		r.kernel.Forget(uid)
		r.pods.forget(uid)
	}
}

// lookAfter enqueues the objects that a change of an Application may concern: its own, those it
// contended for, and those in its namespace that it may claim.
func (r *Reconciler) lookAfter(key types.NamespacedName, before, after *entry) {
	for _, ref := range r.keeper.Contested(key) {
		r.keeper.Look(ref)
	}
	for _, e := range []*entry{before, after} {
		if e == nil {
			continue
		}
		for _, o := range r.tracker.By(ownerKey(key.Namespace, e.uid)) {
			r.keeper.Look(o.Ref)
		}
	}
	for _, o := range r.tracker.By(annotationKey(key)) {
		r.keeper.Look(o.Ref)
	}
	if after == nil || after.member == nil || after.deleting {
		return
	}
	for _, gk := range affected(before, after) {
		for _, o := range r.tracker.In(gk, key.Namespace) {
			if after.member.Claims(gk, o.GetObjectMeta()) {
				r.keeper.Look(o.Ref)
			}
		}
	}
}

// annotationKey and ownerKey are the keys that the tracker finds objects by. Both contain the
// namespace: references to an Application in another namespace have no effect.
func annotationKey(app types.NamespacedName) string { return "application " + app.String() }
func ownerKey(namespace string, uid types.UID) string {
	return "owner " + namespace + "/" + string(uid)
}
