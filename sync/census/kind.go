package census

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/sync/watch"
)

// Phase is how far a kind is known.
type Phase int

const (
	// Starting: nothing is known yet; KindChanged comes when something is.
	Starting Phase = iota
	// Watched: all objects are known but for what is on its way.
	Watched
	// Unknown: the API server does not serve the kind. Its objects, if there were any, are gone.
	Unknown
	// Denied: it may not be watched. Tried again now and then.
	Denied
	// Failing: it could not be watched yet, or not for minutes. Tried again soon. What was known
	// of its objects is kept.
	Failing
	// ClusterScoped: its objects have no namespace, and are not watched. Whether that changes,
	// as when the kind is defined anew, is.
	ClusterScoped
)

// State is what is known of a kind as a whole.
type State struct {
	Phase Phase
	// Resource is how the API server calls the kind; empty while that is not known.
	Resource schema.GroupVersionResource
	// Err is why the kind is Unknown, Denied or Failing, or why the last try of one that is
	// Starting came to nothing. Its text is stable.
	Err error
}

const (
	// firstRetry and lastRetry bound the waits between tries.
	firstRetry = time.Second
	lastRetry  = 2 * time.Minute
	// retryUnknown is for kinds that no CustomResourceDefinition announces: those of an
	// API server of its own behind this one.
	retryUnknown = 10 * time.Minute
	// tolerated is how often in a row a kind that was watched may be denied before that is
	// believed: an API server that has just started does not know all rights yet.
	tolerated = 3
	// trusted is how long what was seen of a kind counts that cannot be listed any more, as while
	// the webhook that converts it is broken.
	trusted = 3 * time.Minute
)

// kind is one kind of objects. All of it is guarded by the lock of the Census.
type kind struct {
	census *Census
	gk     schema.GroupKind
	users  sets.Set[types.NamespacedName]
	state  State
	// ended: nobody wanted the kind for so long that it was dropped.
	ended bool

	// resolving: somebody finds out how the kind is called; again: once more after that.
	resolving, again bool
	// sink is that of the present watch; nil without one.
	sink *sink
	// lost is how the API server called the kind before it stopped to serve that; empty while
	// it does.
	lost schema.GroupVersionResource
	// defined: a CustomResourceDefinition said last how the kind is called.
	defined bool
	// failures counts tries in a row that came to nothing. retry is the next try.
	failures int
	retry    *time.Timer

	objects map[string]map[string]*Object // by namespace and name
}

func newKind(c *Census, gk schema.GroupKind) *kind {
	return &kind{census: c, gk: gk, users: sets.New[types.NamespacedName](), objects: make(map[string]map[string]*Object)}
}

// resolve finds out how the kind is called and watches it, unless it is being watched.
func (k *kind) resolve() {
	k.census.mu.Lock()
	defer k.census.mu.Unlock()
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

// find asks what there is to ask, which takes its time.
func (k *kind) find() {
	mapping, err := k.locate()
	if k.census.ctx.Err() != nil {
		return
	}
	k.census.mu.Lock()
	k.resolving = false
	if k.ended {
		k.census.mu.Unlock()
		k.census.definitions.Leave(k, nil)
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
		changed = k.state.Phase == Watched // under another name from now on
		k.state.Resource, k.lost = mapping.Resource, schema.GroupVersionResource{}
		k.start()
	}
	follow := err != nil || !namespaced(mapping) && k.defined
	k.census.mu.Unlock()
	if !follow {
		k.census.definitions.Leave(k, nil)
	}
	k.tell(gone, changed)
	if again && follow {
		k.resolve()
	}
}

// tell tells of objects that are gone, and of another state.
func (k *kind) tell(gone []transition, changed bool) {
	for _, t := range gone {
		k.census.changed(t.before, nil)
	}
	if changed {
		k.census.kindChanged(k.gk)
	}
}

// unresolved takes in why the kind could not be found. The caller holds the lock, and tells of
// objects that are gone with it.
func (k *kind) unresolved(err error) (changed bool, gone []transition) {
	var (
		missing watch.NoDefinitionError
		pending watch.NotEstablishedError
		hidden  watch.HiddenError
	)
	switch {
	case errors.As(err, &missing):
		if k.lost.Empty() {
			k.tryAfter(retryUnknown) // a definition that arrives wakes us up before
		} else {
			k.tryLater() // what is no CustomResourceDefinition comes back unannounced
		}
		err = k.unknown()
	case errors.As(err, &pending):
	case errors.As(err, &hidden):
		k.tryLater()
		err = k.unknown()
	default:
		k.tryLater()
		if k.state.Phase == Watched || k.state.Phase == ClusterScoped {
			return false, nil // what was known counts until more is
		}
		phase := Failing
		if k.state.Phase == Starting {
			phase = Starting // overdue tells when that takes too long
		}
		return k.become(State{Phase: phase, Err: fmt.Errorf("find kind %s: %w", k.gk, watch.Stable(err))}), nil
	}
	k.lost, k.defined = schema.GroupVersionResource{}, false
	return k.become(State{Phase: Unknown, Err: err}), k.unsetAllBut(nil)
}

// overdue takes in that nobody has answered for long: whoever waits is told.
func (k *kind) overdue() {
	c := k.census
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
	return fmt.Errorf("the cluster has no kind %s: install what defines it", k.gk)
}

// become sets the state, and says whether that is another one. The caller holds the lock.
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

// tryLater tries again after a wait that grows. The caller holds the lock.
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

// start begins a watch. The caller holds the lock.
func (k *kind) start() {
	s := &sink{kind: k}
	k.sink = s
	client := k.census.target.Metadata().Resource(k.state.Resource)
	s.feed = watch.New(watch.Metadata(client, "", ""), s, k.reduce)
	s.feed.OnChange(s.fared)
	s.feed.Start(k.census.ctx)
}

// leave drops the kind, if nobody wants it any more. Its objects are told to be gone, so that
// nobody keeps anything of them either.
func (k *kind) leave() {
	c := k.census
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

// set puts an object in the place of the one of its name. The caller holds the lock.
func (k *kind) set(o *Object) {
	k.census.file(k.objects[o.Namespace][o.Name], false)
	if k.objects[o.Namespace] == nil {
		k.objects[o.Namespace] = make(map[string]*Object)
	}
	k.objects[o.Namespace][o.Name] = o
	k.census.file(o, true)
}

// unset takes an object out. The caller holds the lock.
func (k *kind) unset(o *Object) {
	k.census.file(o, false)
	if delete(k.objects[o.Namespace], o.Name); len(k.objects[o.Namespace]) == 0 {
		delete(k.objects, o.Namespace)
	}
}
