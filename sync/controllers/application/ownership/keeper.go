package ownership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/membership"
)

const (
	// maxWrites is how many objects are written at the same time. It is high because a write is little
	// but the wait for its answer: the slower that is, the more must be under way for the rest not to
	// queue up here.
	maxWrites = 64
	// writeLimit is how long the API server may take to answer.
	writeLimit = 30 * time.Second
	// firstRetry and lastRetry bound the wait after a failed write.
	firstRetry, lastRetry = time.Second, 2 * time.Minute
	// Up to calm writes of one object within period are no sign that another client reverts them.
	calm   = 4
	period = time.Minute
)

// Options of a Keeper. All are required.
type Options struct {
	Owners   *Owners
	Tracker  *tracker.Tracker
	Metadata metadata.Interface
	// Changed is called with an Application whenever the result of Problem or Contested may have
	// changed for it, or that of Giving has, which was true. It must return at once.
	Changed func(types.NamespacedName)
}

// Keeper reconciles objects, and writes the changes that they need. It is safe for concurrent use.
type Keeper struct {
	options Options
	queue   workqueue.TypedRateLimitingInterface[tracker.Ref]

	mu sync.Mutex
	// problems holds why an object could not be written.
	problems map[tracker.Ref]error
	// contested maps an object to the Applications that contend for it; claims maps an Application
	// to the objects that it contends for.
	contested map[tracker.Ref][]types.NamespacedName
	claims    map[types.NamespacedName]sets.Set[tracker.Ref]
	// writes counts the writes of an object, to detect that another client reverts them.
	writes map[tracker.Ref]spell
	// denied holds where writes were denied recently.
	denied map[place]denial
	// giving counts, for each Application, the references to it that are being written; awaited says
	// whether Giving has returned true for it, so that its caller waits.
	giving  map[types.UID]int
	awaited map[types.UID]bool
}

// spell is a number of writes within a period.
type spell struct {
	count int
	since time.Time
}

// New returns a Keeper. It does nothing until Run is called.
func New(options Options) *Keeper {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[tracker.Ref](firstRetry, lastRetry)
	return &Keeper{
		options:   options,
		queue:     workqueue.NewTypedRateLimitingQueue(limiter),
		problems:  make(map[tracker.Ref]error),
		contested: make(map[tracker.Ref][]types.NamespacedName),
		claims:    make(map[types.NamespacedName]sets.Set[tracker.Ref]),
		writes:    make(map[tracker.Ref]spell),
		denied:    make(map[place]denial),
		giving:    make(map[types.UID]int),
		awaited:   make(map[types.UID]bool),
	}
}

// Look enqueues an object.
func (k *Keeper) Look(ref tracker.Ref) { k.queue.Add(ref) }

// Problem returns why the object could not be written, or nil if nothing prevented that.
func (k *Keeper) Problem(ref tracker.Ref) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problems[ref]
}

// Contenders returns the Applications that all match an object which names none; nil if there are
// fewer than two.
func (k *Keeper) Contenders(ref tracker.Ref) []types.NamespacedName {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.contested[ref]
}

// Contested returns the objects that name no Application, and match this one and at least one
// other.
func (k *Keeper) Contested(app types.NamespacedName) []tracker.Ref {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.claims[app].UnsortedList()
}

// Giving reports whether a reference to an Application may still be on its way. If so, Changed is
// called when that is over. Once Owners know that an Application is being deleted, no further reference to
// it is written.
func (k *Keeper) Giving(app types.UID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	giving := k.giving[app] > 0
	if giving {
		k.awaited[app] = true
	}
	return giving
}

// Run reconciles objects until ctx ends. It must be called only once, after Owners have all
// Applications: only then is it known which of them match an object.
func (k *Keeper) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range maxWrites {
		workers.Go(func() {
			for k.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	k.queue.ShutDown()
	workers.Wait()
}

func (k *Keeper) next(ctx context.Context) bool {
	ref, stopped := k.queue.Get()
	if stopped {
		return false
	}
	defer k.queue.Done(ref)
	k.settle(ctx, ref)
	return true
}

// settle brings one object in line with its Applications.
func (k *Keeper) settle(ctx context.Context, ref tracker.Ref) {
	object := k.options.Tracker.Get(ref)
	if object == nil {
		k.forget(ref)
		return
	}
	d := k.decide(object)
	defer k.given(d.given)
	k.contend(ref, d.contenders)
	if d.nothing() {
		k.queue.Forget(ref)
		k.note(object, nil)
		return
	}
	if d := k.denial(placeOf(ref)); d.err != nil {
		k.queue.AddAfter(ref, time.Until(d.until)+time.Second)
		k.note(object, d.err)
		return
	}
	if wait := k.undone(ref); wait > 0 {
		k.queue.AddAfter(ref, wait)
		k.note(object, errUndone)
		return
	}
	resource := k.options.Tracker.State(ref.GroupKind).Resource
	if resource.Empty() {
		return // no longer served, so there is no object either
	}
	err := k.write(ctx, resource, object, d)
	switch {
	case err == nil:
		k.queue.Forget(ref)
		k.count(ref)
	case lacksRight(err):
		k.deny(ref, err)
		err = deniedError{err}
	case watch.IsKindNotFound(err): // it is served in another version, or not at all
		k.options.Tracker.Missing(resource)
		k.queue.AddRateLimited(ref)
		return
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return // the watch delivers the current state
	case ctx.Err() == nil:
		k.queue.AddRateLimited(ref)
	}
	k.note(object, err)
}

// decide decides on an object, and counts the reference that this adds. Both happen under one lock,
// so that a caller who knows that an Application is being deleted, and then calls Giving, misses no
// reference.
func (k *Keeper) decide(object *tracker.Object) decision {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.options.Owners.decide(object)
	if d.given != nil {
		k.giving[d.given.UID]++
	}
	return d
}

// given records that the reference of a decision was written, or will not be. It notifies an
// Application that waits for that; others learn of the reference as of any change of the object.
func (k *Keeper) given(app *membership.Application) {
	if app == nil {
		return
	}
	k.mu.Lock()
	awaited := false
	if k.giving[app.UID]--; k.giving[app.UID] == 0 {
		awaited = k.awaited[app.UID]
		delete(k.giving, app.UID)
		delete(k.awaited, app.UID)
	}
	k.mu.Unlock()
	if awaited {
		k.options.Changed(app.Key)
	}
}

// write sends one patch, and passes its answer to the Tracker.
func (k *Keeper) write(ctx context.Context, resource schema.GroupVersionResource, object *tracker.Object, d decision) error {
	patch, err := d.patch(object)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	answer, err := k.options.Metadata.Resource(resource).Namespace(object.Namespace).Patch(
		ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{
			FieldManager:    v1alpha1.OwnershipFieldManager,
			FieldValidation: metav1.FieldValidationIgnore, // no need to look for unknown fields in the whole object
		})
	if err != nil {
		return fmt.Errorf("patch %s: %w", resource.GroupResource(), watch.Stable(err))
	}
	k.options.Tracker.Written(object.GroupKind, answer)
	return nil
}

// errUndone reports that writes are in vain.
var errUndone = errors.New("another field manager keeps reverting it; corrections back off; see its metadata.managedFields")

// undone returns how long to wait before an object is written again; more than zero if it was
// written too often recently, which means that another client reverts the writes.
func (k *Keeper) undone(ref tracker.Ref) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.writes[ref]; s.count >= calm {
		return max(0, period-time.Since(s.since))
	}
	return 0
}

// count counts a write.
func (k *Keeper) count(ref tracker.Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.writes[ref]
	if now := time.Now(); now.Sub(s.since) > period {
		s = spell{since: now}
	}
	s.count++
	k.writes[ref] = s
}

// note records the result for an object, and notifies the Applications that it concerns.
func (k *Keeper) note(object *tracker.Object, err error) {
	k.mu.Lock()
	before := k.problems[object.Ref]
	if err == nil {
		delete(k.problems, object.Ref)
	} else {
		k.problems[object.Ref] = err
	}
	k.mu.Unlock()
	if text(before) == text(err) {
		return
	}
	told := sets.New[types.NamespacedName]()
	if name := object.Annotations[v1alpha1.ApplicationAnnotation]; name != "" {
		told.Insert(types.NamespacedName{Namespace: object.Namespace, Name: name})
	}
	for _, reference := range object.Owners {
		if IsApplication(reference) {
			told.Insert(types.NamespacedName{Namespace: object.Namespace, Name: reference.Name})
		}
	}
	for _, app := range k.options.Owners.Index.Candidates(object.GroupKind, object.GetObjectMeta()) {
		told.Insert(app.Key)
	}
	for key := range told {
		k.options.Changed(key)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// contend records which Applications contend for an object, and notifies them and the former
// contenders.
func (k *Keeper) contend(ref tracker.Ref, now []types.NamespacedName) {
	k.mu.Lock()
	before := sets.New(k.contested[ref]...)
	after := sets.New(now...)
	if before.Equal(after) {
		k.mu.Unlock()
		return
	}
	if delete(k.contested, ref); len(now) > 0 {
		k.contested[ref] = now
	}
	for key := range before {
		if k.claims[key].Delete(ref); k.claims[key].Len() == 0 {
			delete(k.claims, key)
		}
	}
	for key := range after {
		if k.claims[key] == nil {
			k.claims[key] = sets.New[tracker.Ref]()
		}
		k.claims[key].Insert(ref)
	}
	k.mu.Unlock()
	for key := range before.Union(after) {
		k.options.Changed(key)
	}
}

// forget drops what is known of an object that no longer exists.
func (k *Keeper) forget(ref tracker.Ref) {
	k.contend(ref, nil)
	k.queue.Forget(ref)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.problems, ref)
	delete(k.writes, ref)
}
