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
	// steady is how long a watch must have lasted for the next one to start without delay.
	steady = 30 * time.Second
	// maxNotFound is how many times in a row a kind may not be found: a kind is served only a
	// moment after its definition was established.
	maxNotFound = 6
)

// ErrStopped is returned to callers that wait for a feed when the feed is ended.
var ErrStopped = errors.New("watch stopped")

// Seen is what a feed reduces an object to. Its metadata need only have namespace and name, which
// client-go uses to identify the original object.
type Seen interface{ metav1.ObjectMetaAccessor }

// Sink receives what a feed sees. Its methods are called one at a time.
type Sink[S Seen] interface {
	// Put is called when an object was created or changed.
	Put(S)
	// Drop is called when an object is gone, or no longer matches the feed.
	Drop(S)
	// Replace is called with all objects as of a resource version.
	Replace(all []S, version string)
}

// Feed is one watch that continues until it is ended, even if connections are lost. It stores no
// objects: it reduces them and hands them to its sink. It gives up on a kind that may not be
// watched or is not served; State reports that.
type Feed[S Seen] struct {
	source *cache.ListWatch
	sink   Sink[S]
	reduce func(metav1.Object) S

	kicks  chan struct{}
	cancel context.CancelFunc
	told   func(State)
	retry  time.Duration

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed and replaced at each change of state
}

// State is the state of a feed.
type State struct {
	// Synced is true if the sink is up to date, except for events in transit.
	Synced bool
	// Err is why the last attempt failed; nil while Synced.
	Err error
	// Ended is true if there will be no further attempt, or none before the time that Retry has set. At is
	// when the feed ended.
	Ended bool
	At    time.Time

	// failures counts failed attempts; notFound counts those in a row for a kind that is not
	// served.
	failures, notFound int
}

// New returns a feed of a source; Start starts it. reduce is called while a list is still being
// received, so that the list is never in memory as a whole.
func New[S Seen](source *cache.ListWatch, sink Sink[S], reduce func(metav1.Object) S) *Feed[S] {
	return &Feed[S]{
		source:  source,
		sink:    sink,
		reduce:  reduce,
		kicks:   make(chan struct{}, 1),
		changed: make(chan struct{}),
	}
}

// OnChange sets a function that is called on every change of state, from the goroutine that caused
// it. OnChange must be called before Start.
func (f *Feed[S]) OnChange(told func(State)) { f.told = told }

// Retry has the feed begin again some time after it has given up: by then, the right to watch may have been
// granted, or the kind be served. Retry must be called before Start.
func (f *Feed[S]) Retry(after time.Duration) { f.retry = after }

// Start runs the feed until End is called or ctx is cancelled.
func (f *Feed[S]) Start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(ctx)
	go f.run(ctx)
}

func (f *Feed[S]) run(ctx context.Context) {
	defer f.cancel() // no caller ends a feed that has given up
	for f.follow(ctx); f.retry > 0; f.follow(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(f.retry):
		}
		if !f.begin(ctx) {
			return
		}
	}
}

// begin has a feed that has given up begin again, unless it was ended meanwhile.
func (f *Feed[S]) begin(ctx context.Context) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	f.state.Ended, f.state.notFound = false, 0
	return true
}

// follow lists and watches until ctx ends, or the feed gives up.
func (f *Feed[S]) follow(ctx context.Context) {
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

// newBackoff returns the back-off between attempts without a call of kick.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second}
}

// failed records that an attempt ended. It returns true if there should be no other: the kind may
// not or cannot be watched, or does not exist.
func (f *Feed[S]) failed(err error) bool {
	if err == nil {
		return false // the server ended an established watch: start another
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

// succeeded records that the sink is up to date.
func (f *Feed[S]) succeeded() {
	f.become(func(s State) State { return State{Synced: true, failures: s.failures} })
}

// End stops the feed.
func (f *Feed[S]) End() {
	f.cancel()
	f.become(func(State) State { return State{Err: ErrStopped, Ended: true, At: time.Now()} })
}

// become changes the state, unless the feed has ended, and wakes up callers that wait.
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

// Await waits until the feed is synced and returns nil, or until an attempt that ends after the
// call fails, and returns its error. It wakes up a feed that waits for its next attempt.
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
		f.kick()
		select {
		case <-ctx.Done():
			f.mu.Lock()
			return context.Cause(ctx)
		case <-changed:
			f.mu.Lock()
		}
	}
}

// kick makes a feed that waits try again at once.
func (f *Feed[S]) kick() {
	select {
	case f.kicks <- struct{}{}:
	default:
	}
}

// State returns the state of the feed.
func (f *Feed[S]) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Refused reports whether the feed is not allowed to watch, and was refused so recently that
// another attempt is not worthwhile.
func (s State) Refused(recently time.Duration) bool {
	return s.Ended && IsUnwatchable(s.Err) && time.Since(s.At) < recently
}
