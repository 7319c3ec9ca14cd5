package tracker

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/sync/cluster/watch"
)

// Phase is how much is known of a kind.
type Phase int

const (
	// Starting: nothing is known yet; KindChanged is called when something is.
	Starting Phase = iota
	// Watched: all objects are known, up to the delay of the watch.
	Watched
	// Unknown: the API server does not serve the kind. Its objects, if there were any, are gone.
	Unknown
	// Denied: we may not watch the kind. It is tried again now and then.
	Denied
	// Failing: the kind could not be watched yet, or not for minutes. It is tried again soon. What
	// was known of its objects is kept.
	Failing
	// ClusterScoped: the objects have no namespace, and are not watched. Changes of the scope, as
	// when the kind is defined again, are noticed.
	ClusterScoped
)

// State is what is known of a kind as a whole.
type State struct {
	Phase Phase
	// Resource is the resource under which the API server serves the kind; empty while that is not
	// known.
	Resource schema.GroupVersionResource
	// Err is why the kind is Unknown, Denied or Failing, or why the last try for a kind that is
	// Starting failed. Its text is stable.
	Err error
}

const (
	// firstRetry and lastRetry bound the waits between tries.
	firstRetry = time.Second
	lastRetry  = 2 * time.Minute
	// retryUnknown is for kinds that no CustomResourceDefinition announces: those of an aggregated
	// API server.
	retryUnknown = 10 * time.Minute
	// tolerated is how often in a row access to a kind that was watched may be denied before that
	// is believed: an API server that has just started does not know all rights yet.
	tolerated = 3
	// trusted is how long the known objects of a kind are trusted while the kind cannot be listed
	// any more, for example because its conversion webhook is broken.
	trusted = 3 * time.Minute
)

// kind is one kind of objects. All its fields are guarded by the lock of the Tracker.
type kind struct {
	tracker *Tracker
	gk      schema.GroupKind
	users   sets.Set[types.NamespacedName]
	state   State
	// ended: the kind was dropped because it had no users left.
	ended bool

	// resolving: a goroutine is finding the resource of the kind; again: it must be found once more
	// after that.
	resolving, again bool
	// sink is the sink of the current watch; nil if there is none.
	sink *sink
	// lost is the resource under which the API server has stopped serving the kind; empty while it
	// serves it.
	lost schema.GroupVersionResource
	// defined: the mapping last came from a CustomResourceDefinition.
	defined bool
	// failures counts failed tries in a row. retry is the timer of the next try.
	failures int
	retry    *time.Timer

	objects map[string]map[string]*Object // by namespace and name
}

func newKind(c *Tracker, gk schema.GroupKind) *kind {
	return &kind{tracker: c, gk: gk, users: sets.New[types.NamespacedName](), objects: make(map[string]map[string]*Object)}
}

// resolve finds the resource of the kind and watches it, unless it is already being watched.
func (k *kind) resolve() {
	k.tracker.mu.Lock()
	defer k.tracker.mu.Unlock()
	if k.ended || k.sink != nil || k.state.Phase == ClusterScoped && !k.defined {
		return
	}
	if k.resolving {
		k.again = true
		return
	}
	k.resolving = true
	if k.retry != nil {
		k.retry.Stop()
	}
	go k.find()
}

// find asks the API server, which takes time.
func (k *kind) find() {
	mapping, err := k.locate()
	if k.tracker.ctx.Err() != nil {
		return
	}
	k.tracker.mu.Lock()
	k.resolving = false
	if k.ended {
		k.tracker.mu.Unlock()
		k.tracker.definitions.Leave(k, nil)
		return
	}
	again := k.again
	k.again = false
	var (
		changed bool
		gone    []transition
	)
	switch {
	case err != nil:
		changed, gone = k.unresolved(err)
	case !namespaced(mapping):
		k.lost = schema.GroupVersionResource{}
		changed, gone = k.become(State{Phase: ClusterScoped, Resource: mapping.Resource}), k.unsetAllBut(nil)
	default:
		changed = k.state.Phase == Watched // it is served as another resource from now on
		k.state.Resource, k.lost = mapping.Resource, schema.GroupVersionResource{}
		k.start()
	}
	follow := err != nil || !namespaced(mapping) && k.defined
	k.tracker.mu.Unlock()
	if !follow {
		k.tracker.definitions.Leave(k, nil)
	}
	k.tell(gone, changed)
	if again && follow {
		k.resolve()
	}
}

// tell reports objects that are gone, and a change of the state.
func (k *kind) tell(gone []transition, changed bool) {
	for _, t := range gone {
		k.tracker.changed(t.before, nil)
	}
	if changed {
		k.tracker.kindChanged(k.gk)
	}
}

// unresolved records why the kind could not be found. The caller holds the lock, and must report
// the objects that are gone as a result.
func (k *kind) unresolved(err error) (changed bool, gone []transition) {
	var (
		missing watch.NoDefinitionError
		pending watch.NotEstablishedError
		hidden  watch.HiddenError
	)
	switch {
	case errors.As(err, &missing):
		if k.lost.Empty() {
			k.tryAfter(retryUnknown) // a definition that arrives triggers a try before
		} else {
			k.tryLater() // without a CustomResourceDefinition it comes back unannounced
		}
		err = k.unknown()
	case errors.As(err, &pending):
	case errors.As(err, &hidden):
		k.tryLater()
		err = k.unknown()
	default:
		k.tryLater()
		if k.state.Phase == Watched || k.state.Phase == ClusterScoped {
			return false, nil // keep what was known until there is an answer
		}
		phase := Failing
		if k.state.Phase == Starting {
			phase = Starting // overdue reports when that takes too long
		}
		return k.become(State{Phase: phase, Err: fmt.Errorf("find kind %s: %w", k.gk, watch.Stable(err))}), nil
	}
	k.lost, k.defined = schema.GroupVersionResource{}, false
	return k.become(State{Phase: Unknown, Err: err}), k.unsetAllBut(nil)
}

// overdue turns a kind that has been Starting for too long into a Failing one, and notifies those
// who wait.
func (k *kind) overdue() {
	c := k.tracker
	c.mu.Lock()
	late := !k.ended && k.state.Phase == Starting
	if late {
		if k.state.Phase = Failing; k.state.Err == nil {
			k.state.Err = fmt.Errorf("find and list %s: no answer yet", k.gk)
		}
	}
	c.mu.Unlock()
	if late {
		c.kindChanged(k.gk)
	}
}

func (k *kind) unknown() error {
	return fmt.Errorf("the cluster does not serve kind %s: install what defines it", k.gk)
}

// become sets the state, and reports whether it differs from the previous one. The caller holds the
// lock.
func (k *kind) become(state State) bool {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	before := k.state
	k.state = state
	return before.Phase != state.Phase || text(before.Err) != text(state.Err)
}

// tryLater schedules another try after a growing wait. The caller holds the lock.
func (k *kind) tryLater() {
	wait := firstRetry << min(k.failures, 10)
	k.failures++
	k.tryAfter(min(wait, lastRetry))
}

func (k *kind) tryAfter(wait time.Duration) {
	if k.retry != nil {
		k.retry.Stop()
	}
	k.retry = time.AfterFunc(wait, k.resolve)
}

// start starts a watch. The caller holds the lock.
func (k *kind) start() {
	s := &sink{kind: k}
	k.sink = s
	client := k.tracker.target.Metadata().Resource(k.state.Resource)
	s.feed = watch.New(watch.Metadata(client, "", ""), s, k.reduce)
	s.feed.OnChange(s.fared)
	s.feed.Start(k.tracker.ctx)
}

// leave drops the kind if it has no users left. It reports the kind's objects as gone, so that
// others drop what they keep of them, too.
func (k *kind) leave() {
	c := k.tracker
	c.mu.Lock()
	if k.ended || k.users.Len() > 0 {
		c.mu.Unlock()
		return
	}
	k.ended = true
	delete(c.kinds, k.gk)
	gone := k.unsetAllBut(nil)
	if k.retry != nil {
		k.retry.Stop()
	}
	s := k.sink
	k.sink = nil
	c.mu.Unlock()
	c.definitions.Leave(k, nil)
	if s != nil {
		s.feed.End()
	}
	for _, t := range gone {
		c.changed(t.before, nil)
	}
}

// set stores an object, in place of the one with its name. The caller holds the lock.
func (k *kind) set(o *Object) {
	k.tracker.file(k.objects[o.Namespace][o.Name], false)
	if k.objects[o.Namespace] == nil {
		k.objects[o.Namespace] = make(map[string]*Object)
	}
	k.objects[o.Namespace][o.Name] = o
	k.tracker.file(o, true)
}

// unset removes an object. The caller holds the lock.
func (k *kind) unset(o *Object) {
	k.tracker.file(o, false)
	if delete(k.objects[o.Namespace], o.Name); len(k.objects[o.Namespace]) == 0 {
		delete(k.objects, o.Namespace)
	}
}
