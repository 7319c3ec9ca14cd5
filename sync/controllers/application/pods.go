package application

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/controllers/application/ownership"
	"waybill.dev/waybill/sync/health"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// retryPods is how long after it was forbidden the watch of health check Pods is tried again.
const retryPods = 30 * time.Second

// podsLimit is how long nothing is written because no Pods are known yet. An API server that does not
// answer must not hold up Applications that have none.
const podsLimit = 10 * time.Second

var errNoPods = errors.New("no answer yet")

// pod is what is kept of a health check Pod.
type pod struct {
	key      types.NamespacedName
	uid      types.UID
	owner    types.NamespacedName // the Application
	ownerUID types.UID
	deleting bool
	// finished: none of its containers will run again.
	finished bool
	// ready is the status of its Ready condition; empty if it has none.
	ready metav1.ConditionStatus
	// message says why it is not ready, if its status says so.
	message string
}

// readiness is what the status of the Application says of it, once it is the Pod that is wanted.
// There may be no Pod.
func (p *pod) readiness() metav1.ConditionStatus {
	if p == nil || p.deleting || p.finished || p.ready == "" {
		return metav1.ConditionUnknown
	}
	return p.ready
}

// leaves reports whether the Pod, which does not belong to the Application of that name as it is now,
// goes by itself: it is being deleted, or will be by the garbage collector, as it belongs to a former
// one.
func (p *pod) leaves(app types.NamespacedName) bool { return p.deleting || p.owner == app }

// GetObjectMeta implements watch.Seen.
func (p *pod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.key.Namespace, Name: p.key.Name}
}

// pods watches the Pods of health checks as soon as there is an Application: one that has dropped
// its health check may still have a Pod.
type pods struct {
	ctx    context.Context
	target watch.Target
	// wake enqueues an Application at once, for a readiness that it mirrors; soon enqueues it for
	// anything else.
	wake, soon func(types.NamespacedName)

	mu    sync.Mutex
	feed  *watch.Feed[*pod]
	state watch.State
	// seen: all of them were seen once. What is known counts from then on, even if it is outdated.
	seen bool
	// owned holds them by the UID of their Application and by name.
	owned map[types.UID]map[types.NamespacedName]*pod
	// ownerOf holds the UID that a Pod is under in owned.
	ownerOf map[types.NamespacedName]types.UID
	// waiting are the Applications that asked before anything was known.
	waiting map[types.NamespacedName]bool
	// tries counts, for each Application, how often its Pod was created since it was last ready.
	tries map[types.UID]tries
}

// tries of one Pod, by name.
type tries struct {
	pod   string
	count int
	last  time.Time
	// refusal is the API server's last error; nil if it created the Pod.
	refusal error
}

func newPods(ctx context.Context, target watch.Target, wake, soon func(types.NamespacedName)) *pods {
	return &pods{
		ctx: ctx, target: target, wake: wake, soon: soon,
		owned:   make(map[types.UID]map[types.NamespacedName]*pod),
		ownerOf: make(map[types.NamespacedName]types.UID),
		waiting: make(map[types.NamespacedName]bool),
		tries:   make(map[types.UID]tries),
	}
}

// of returns the Pods of an Application, and whether they are known. If they are not, err may say
// why, and the Application is enqueued when that changes.
func (p *pods) of(app types.NamespacedName, uid types.UID) (all []*pod, known bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.feed == nil {
		p.start()
	}
	known = p.seen && !p.state.Ended
	if !known {
		p.waiting[app] = true
	}
	return p.ofLocked(app.Namespace, uid), known, p.state.Err
}

func (p *pods) ofLocked(namespace string, uid types.UID) []*pod {
	list := make([]*pod, 0, len(p.owned[uid]))
	for _, one := range p.owned[uid] {
		if one.key.Namespace == namespace {
			list = append(list, one)
		}
	}
	return list
}

// start starts a watch. The caller must hold the lock.
func (p *pods) start() {
	p.feed = watch.New(watch.Objects(p.target.Dynamic().Resource(podResource), v1alpha1.HealthCheckLabel), p, reducePod)
	p.feed.OnChange(p.fared)
	p.feed.Retry(retryPods)
	p.feed.Start(p.ctx)
	time.AfterFunc(podsLimit, p.overdue)
}

// overdue notifies the waiting Applications that the Pods are not known yet.
func (p *pods) overdue() {
	p.mu.Lock()
	if p.seen || p.state.Err != nil {
		p.mu.Unlock()
		return
	}
	p.state.Err = errNoPods
	waiting := p.waiting
	p.waiting = make(map[types.NamespacedName]bool)
	p.mu.Unlock()
	for app := range waiting {
		p.soon(app)
	}
}

// fared records the state of the watch.
func (p *pods) fared(state watch.State) {
	p.mu.Lock()
	p.state = state
	p.seen = p.seen || state.Synced
	waiting := p.waiting
	p.waiting = make(map[types.NamespacedName]bool)
	if state.Ended { // what is known of them no longer counts
		for _, one := range p.all() {
			waiting[one.owner] = true
		}
	}
	p.mu.Unlock()
	for app := range waiting {
		p.soon(app)
	}
}

// Put implements watch.Sink.
func (p *pods) Put(seen *pod) {
	p.mu.Lock()
	before := p.get(seen.key)
	p.set(seen)
	p.mu.Unlock()
	p.changed(before, seen)
}

// changed enqueues the Application of a Pod: at once if the readiness that it mirrors has changed, or
// if the Pod, which is nil then, is to be recreated.
func (p *pods) changed(before, after *pod) {
	wake := p.soon
	if after == nil || before.readiness() != after.readiness() {
		wake = p.wake
	}
	for _, one := range []*pod{before, after} {
		if one != nil {
			wake(one.owner)
		}
	}
}

// named returns the Pod of that name, no matter which Application owns it, and nil if none is known.
func (p *pods) named(key types.NamespacedName) *pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.get(key)
}

// get returns the Pod of that name, nil if none is known. The caller must hold the lock.
func (p *pods) get(key types.NamespacedName) *pod {
	return p.owned[p.ownerOf[key]][key]
}

// all returns every known Pod. The caller must hold the lock.
func (p *pods) all() []*pod {
	var list []*pod
	for _, pods := range p.owned {
		list = slices.AppendSeq(list, maps.Values(pods))
	}
	return list
}

// set replaces the Pod of that name, no matter which Application owned it.
func (p *pods) set(seen *pod) {
	if owner, known := p.ownerOf[seen.key]; known && owner != seen.ownerUID {
		p.unset(seen.key)
	}
	p.ownerOf[seen.key] = seen.ownerUID
	if p.owned[seen.ownerUID] == nil {
		p.owned[seen.ownerUID] = make(map[types.NamespacedName]*pod, 1)
	}
	p.owned[seen.ownerUID][seen.key] = seen
	if seen.ready == metav1.ConditionTrue {
		delete(p.tries, seen.ownerUID)
	}
}

// Drop implements watch.Sink.
func (p *pods) Drop(seen *pod) {
	p.mu.Lock()
	p.unset(seen.key)
	p.mu.Unlock()
	p.changed(seen, nil)
}

func (p *pods) unset(key types.NamespacedName) {
	owner := p.ownerOf[key]
	delete(p.ownerOf, key)
	if delete(p.owned[owner], key); len(p.owned[owner]) == 0 {
		delete(p.owned, owner)
	}
}

// Replace implements watch.Sink.
func (p *pods) Replace(all []*pod, _ string) {
	p.mu.Lock()
	before := p.all()
	clear(p.owned)
	clear(p.ownerOf)
	after := make(map[types.NamespacedName]*pod, len(all))
	for _, one := range all {
		p.set(one)
		after[one.key] = one
	}
	p.mu.Unlock()
	for _, one := range before {
		p.changed(one, after[one.key])
		delete(after, one.key)
	}
	for _, one := range after {
		p.changed(nil, one)
	}
}

// try returns how long to wait before the Pod may be created again, and why it was last refused. If
// there is no need to wait, it counts as a try.
func (p *pods) try(app types.UID, name string, backoff func(int) time.Duration) (wait time.Duration, refusal error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tries[app]
	if t.pod != name {
		t = tries{pod: name}
	}
	if t.count > 0 {
		if wait := backoff(t.count) - time.Since(t.last); wait > 0 {
			return wait, t.refusal
		}
	}
	p.tries[app] = tries{pod: name, count: t.count + 1, last: time.Now()}
	return 0, nil
}

// refused records why the last try failed.
func (p *pods) refused(app types.UID, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, tried := p.tries[app]; tried {
		t.refusal = why
		p.tries[app] = t
	}
}

// forget drops the tries of an Application that is gone.
func (p *pods) forget(app types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tries, app)
}

// reducePod keeps what matters of a Pod.
func reducePod(in metav1.Object) *pod {
	p := &pod{
		key: types.NamespacedName{Namespace: in.GetNamespace(), Name: in.GetName()},
		uid: in.GetUID(), deleting: in.GetDeletionTimestamp() != nil,
	}
	if owner := metav1.GetControllerOfNoCopy(in); owner != nil && ownership.IsApplication(*owner) {
		p.owner, p.ownerUID = types.NamespacedName{Namespace: p.key.Namespace, Name: owner.Name}, owner.UID
	}
	if u, ok := in.(*unstructured.Unstructured); ok {
		p.read(u.Object)
		p.message = cmp.Or(health.PodProblem(u), p.message)
	}
	return p
}

// read reads the status.
func (p *pod) read(object map[string]any) {
	phase, _, _ := unstructured.NestedString(object, "status", "phase")
	p.finished = phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		status, _ := condition["status"].(string)
		message, _ := condition["message"].(string)
		if condition["type"] == string(corev1.PodReady) {
			p.ready, p.message = metav1.ConditionStatus(status), message
		}
	}
}
