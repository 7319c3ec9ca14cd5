package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

const (
	// steady is how long a watch must have lasted for a new one to be tried at once.
	steady = 30 * time.Second
	// maxNotFound is how often a kind may be not found in a row: one whose
	// definition was established a moment ago is served a moment later.
	maxNotFound = 6
)

// ErrStopped tells who waits for a feed that it was ended.
var ErrStopped = errors.New("watch stopped")

// Seen is what a feed reduces an object to. Its metadata need be no more than namespace and
// name: it stands in stores of client-go for the object that it was made of.
type Seen interface{ metav1.ObjectMetaAccessor }

// Sink takes in what a feed sees. Its methods are called one at a time.
type Sink[S Seen] interface {
	// Put: the object was created or changed.
	Put(S)
	// Drop: the object is gone, or does not match the feed any more.
	Drop(S)
	// Replace: this is all there is at a resource version.
	Replace(all []S, version string)
}

// Feed is one watch that goes on until it is ended, whatever becomes of the connection.
// It keeps no objects: it reduces them and hands them to its sink. It gives up on what may
// not be watched, and on a kind that is not served; State tells.
type Feed[S Seen] struct {
	source *cache.ListWatch
	sink   Sink[S]
	reduce func(metav1.Object) S

	kicks  chan struct{}
	cancel context.CancelFunc
	told   func(State)

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed and replaced at each change of state
}

// State is how a feed is doing.
type State struct {
	// Synced: the sink is up to date but for what is on its way.
	Synced bool
	// Err is why the last try failed; nil while Synced.
	Err error
	// Ended: there will be no other try. At is when that was.
	Ended bool
	At    time.Time

	// failures counts tries that failed, notFound those in a row for a kind that
	// is not served.
	failures, notFound int
}

// New returns a feed of what a source shows, which Start starts. reduce is called while a
// list is still on its way, so that the list is never in memory as a whole.
func New[S Seen](source *cache.ListWatch, sink Sink[S], reduce func(metav1.Object) S) *Feed[S] {
	return &Feed[S]{
		source:  source,
		sink:    sink,
		reduce:  reduce,
		kicks:   make(chan struct{}, 1),
		changed: make(chan struct{}),
	}
}

// OnChange has a function be told of every change of state, from the goroutine that caused
// it. To be called before Start.
func (f *Feed[S]) OnChange(told func(State)) { f.told = told }

// Start runs the feed until it is ended or ctx is.
func (f *Feed[S]) Start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(ctx)
	go f.run(ctx)
}

func (f *Feed[S]) run(ctx context.Context) {
	reflector := cache.NewReflectorWithOptions(f.source, nil, store[S]{f}, cache.ReflectorOptions{
		Name: "waybill",
	})
	backoff := newBackoff()
	for {
		begun := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil || f.failed(err) {
			return
		}
		if time.Since(begun) > steady {
			backoff = newBackoff()
			continue
		}
		timer := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
		case <-f.kicks:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// newBackoff is how long a feed waits between tries when nobody kicks it.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second}
}

// failed takes in that a try ended. It returns true where there is to be no
// other: the kind may not or cannot be watched, or is not there.
func (f *Feed[S]) failed(err error) bool {
	if err == nil {
		return false // the server ended a watch that had begun: look again
	}
	var lost lostError
	if errors.As(err, &lost) {
		err = lost.cause
	}
	return f.become(func(s State) State {
		notFound := 0
		if apierrors.IsNotFound(err) {
			notFound = s.notFound + 1
		}
		ended := IsUnwatchable(err) || IsImpersonation(err) || notFound >= maxNotFound
		return State{Err: err, Ended: ended, At: time.Now(), failures: s.failures + 1, notFound: notFound}
	}).Ended
}

// succeeded takes in that the sink was brought up to date.
func (f *Feed[S]) succeeded() {
	f.become(func(s State) State { return State{Synced: true, failures: s.failures} })
}

// End stops the feed.
func (f *Feed[S]) End() {
	f.cancel()
	f.become(func(State) State { return State{Err: ErrStopped, Ended: true, At: time.Now()} })
}

// become changes the state, unless the feed has ended, and wakes up those who wait.
func (f *Feed[S]) become(next func(State) State) State {
	f.mu.Lock()
	if f.state.Ended {
		defer f.mu.Unlock()
		return f.state
	}
	f.state = next(f.state)
	state := f.state
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
	if f.told != nil {
		f.told(state)
	}
	return state
}

// Await waits until the feed is synced and returns nil, or until a try fails that
// was not over before, and returns why. It wakes up a feed that waits for its next
// try.
func (f *Feed[S]) Await(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.state.failures
	for {
		switch {
		case f.state.Synced:
			return nil
		case f.state.Ended, f.state.failures > before:
			return f.state.Err
		}
		changed := f.changed
		f.mu.Unlock()
		f.Kick()
		select {
		case <-ctx.Done():
			f.mu.Lock()
			return context.Cause(ctx)
		case <-changed:
			f.mu.Lock()
		}
	}
}

// Kick has a feed that waits try again at once.
func (f *Feed[S]) Kick() {
	select {
	case f.kicks <- struct{}{}:
	default:
	}
}

// State returns how the feed is doing.
func (f *Feed[S]) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Refused tells whether the feed may not watch, and was told so as recently that
// another try is not worth it.
func (s State) Refused(recently time.Duration) bool {
	return s.Ended && IsUnwatchable(s.Err) && time.Since(s.At) < recently
}
