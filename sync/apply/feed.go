package apply

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// errFeedStopped tells who waits for a feed that another one took its place.
var errFeedStopped = errors.New("watch stopped")

// sink takes in what a feed sees. Its methods are called one at a time.
type sink interface {
	// put: the object was created or changed.
	put(*feed, *observed)
	// drop: the object is gone, or does not match the feed any more.
	drop(*feed, *observed)
	// replace: this is all there is at a resource version.
	replace(f *feed, all []*observed, version string)
}

// feed is one watch that goes on until it is ended, whatever becomes of the
// connection. It keeps no objects: it reduces them and hands them to its sink.
type feed struct {
	scope  string
	source *cache.ListWatch
	sink   sink
	// full: the objects come with spec and status.
	full bool
	// statuses says whose objects are kept with their field status; nil for nobody's.
	statuses func(Owner) bool
	// version is the last that the sink was shown. Guarded by the sink.
	version string

	kicks  chan struct{}
	cancel context.CancelFunc

	mu      sync.Mutex
	state   feedState
	changed chan struct{} // closed and replaced at each change of state
}

// feedState is how a feed is doing.
type feedState struct {
	// synced: the sink is up to date but for what is on its way.
	synced bool
	// err is why the last try failed; nil while synced.
	err error
	// failures counts tries that failed, notFound those in a row for a kind that
	// is not served.
	failures, notFound int
	// ended: there will be no other try. at is when that was.
	ended bool
	at    time.Time
}

func newFeed(scope string, source *cache.ListWatch, s sink) *feed {
	return &feed{
		scope:   scope,
		source:  source,
		sink:    s,
		kicks:   make(chan struct{}, 1),
		changed: make(chan struct{}),
	}
}

// start runs the feed until it is ended or ctx is.
func (f *feed) start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(ctx)
	go f.run(ctx)
}

func (f *feed) run(ctx context.Context) {
	reflector := cache.NewReflectorWithOptions(f.source, nil, feedStore{f}, cache.ReflectorOptions{
		Name: "waybill-apply",
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
func (f *feed) failed(err error) bool {
	if err == nil {
		return false // the server ended a watch that had begun: look again
	}
	var lost lostError
	if errors.As(err, &lost) {
		err = lost.cause
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.synced, f.state.err = false, err
	f.state.failures++
	if apierrors.IsNotFound(err) {
		f.state.notFound++
	} else {
		f.state.notFound = 0
	}
	f.state.ended = f.state.ended || isUnwatchable(err) || isImpersonation(err) || f.state.notFound >= maxNotFound
	f.state.at = time.Now()
	f.announce()
	return f.state.ended
}

// succeeded takes in that the sink was brought up to date.
func (f *feed) succeeded() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.ended {
		return
	}
	f.state = feedState{synced: true, failures: f.state.failures}
	f.announce()
}

// announce wakes up those who wait. The caller holds the lock.
func (f *feed) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// end stops the feed.
func (f *feed) end() {
	f.cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.state.ended {
		f.state = feedState{err: errFeedStopped, ended: true, at: time.Now()}
		f.announce()
	}
}

// await waits until the feed is synced and returns nil, or until a try fails that
// was not over before, and returns why. It wakes up a feed that waits for its next
// try.
func (f *feed) await(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.state.failures
	for {
		switch {
		case f.state.synced:
			return nil
		case f.state.ended, f.state.failures > before:
			return f.state.err
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

// kick has a feed that waits try again at once.
func (f *feed) kick() {
	select {
	case f.kicks <- struct{}{}:
	default:
	}
}

func (f *feed) synced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.synced
}

// failure returns why the last try failed, nil where it did not.
func (f *feed) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.err
}

// ended tells whether the feed has stopped trying.
func (f *feed) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.ended
}

// refused tells whether the feed may not watch, and was told so as recently that
// another try is not worth it.
func (f *feed) refused(recently time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.ended && isUnwatchable(f.state.err) && time.Since(f.state.at) < recently
}
