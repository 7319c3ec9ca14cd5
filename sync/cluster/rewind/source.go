package rewind

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// Error means that an API server went back to an earlier state.
type Error struct {
	// Before is the resource version that was seen, and Now the one of a list after that: an earlier one, or, where
	// those who restored etcd had it skip some, a much later one.
	Before, Now string
}

func (e *Error) Error() string {
	return fmt.Sprintf("the API server went back in time, from resource version %s to %s: its etcd was restored from a snapshot", e.Before, e.Now)
}

// source is what one reflector lists and watches.
type source struct {
	from cache.ListerWatcherWithContext
	told func(error)

	mu sync.Mutex
	// newest is the resource version that the reflector has reached.
	newest string
	// refused: the API server has refused a connection since it last answered.
	refused bool
	// until is when the watch that began last is to end by itself; zero after a list.
	until time.Time
}

// Source returns a source for one reflector, with the objects of another. A watch waits until connections
// are accepted; if one was refused, and it would go on from a resource version, it fails as expired. If the
// watch before it was cut, or it is slow to begin, it fails as expired where the API server does not know
// that resource version. told is called with an *Error when the API server turns out to have gone back in
// time; it must not block.
func Source(from cache.ListerWatcherWithContext, told func(error)) *cache.ListWatch {
	s := &source{from: from, told: told}
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

func (s *source) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	page, err := s.from.ListWithContext(ctx, o)
	if err != nil {
		return page, err
	}
	if list, err := meta.ListAccessor(page); err == nil {
		s.listed(list.GetResourceVersion())
	}
	return page, nil
}

func (s *source) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	streams := o.SendInitialEvents != nil && *o.SendInitialEvents
	s.reach(o.ResourceVersion)
	asked := time.Now()
	w, err := s.begin(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case streams:
		return s.observe(w), nil
	}
	refused, cut := s.interrupted(asked)
	// The reflector backs off before it lists: whether time went back is found out at once.
	if refused || cut || time.Since(asked) > prompt {
		refused = !s.looksOn(ctx) || refused
	}
	if refused {
		w.Stop()
		return nil, apierrors.NewResourceExpired("the API server was away meanwhile, and may have been restored: list again")
	}
	s.began(asked, o.TimeoutSeconds)
	return w, nil
}

// began records when a watch that was asked for at a time is to end by itself.
func (s *source) began(asked time.Time, seconds *int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = asked.Add(time.Duration(ptr.Deref(seconds, 0)) * time.Second)
}

// prompt is how long a watch takes to begin at most where the API server is there. One that starts accepts
// connections seconds before it answers.
const prompt = 500 * time.Millisecond

// looksOn reports whether the API server knows the resource version that the reflector has reached.
func (s *source) looksOn(ctx context.Context) bool {
	page, err := s.from.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false
	}
	list, err := meta.ListAccessor(page)
	return err == nil && s.compare(list.GetResourceVersion())
}

// reach records the resource version from which a reflector wants to go on.
func (s *source) reach(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == "" || older(s.newest, version) {
		s.newest = version
	}
}

// begin begins a watch once the API server accepts connections. A reflector would try that once or twice
// a minute, if it has been away for a while.
func (s *source) begin(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	backoff := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 5, Cap: 5 * time.Second}
	for {
		w, err := s.from.WatchWithContext(ctx, o)
		if !utilnet.IsConnectionRefused(err) {
			return w, err
		}
		s.refuse()
		pause := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil, err
		case <-pause.C:
		}
	}
}

func (s *source) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
}

// interrupted reports whether connections were refused before the present one, and whether the watch
// before the one that was asked for at a time had ended early, as when an API server ends.
func (s *source) interrupted(asked time.Time) (refused, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refused, cut = s.refused, asked.Before(s.until)
	s.refused = false
	return refused, cut
}

// listed records that the reflector got everything as of a resource version.
func (s *source) listed(version string) {
	s.compare(version)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest, s.refused, s.until = version, false, time.Time{}
}

// compare reports whether the API server is at least at the resource version that the reflector has
// reached. It calls told if it is not, or is further than it can have come by itself.
func (s *source) compare(now string) bool {
	s.mu.Lock()
	before := s.newest
	back := older(now, before)
	restored := back || leapt(before, now)
	if restored {
		s.newest = now // it is reported once
	}
	s.mu.Unlock()
	if restored {
		s.told(&Error{Before: before, Now: now})
	}
	return !back
}

// observe passes on the events of a watch that begins with everything there is.
func (s *source) observe(w watch.Interface) watch.Interface {
	events := make(chan watch.Event)
	passed := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		for {
			select {
			case <-passed.StopChan():
				return
			case e, ok := <-w.ResultChan():
				if !ok || !s.pass(e, events, passed.StopChan()) {
					return
				}
			}
		}
	}()
	return passed
}

// pass hands on an event, unless the reader stops first.
func (s *source) pass(e watch.Event, to chan<- watch.Event, stopped <-chan struct{}) bool {
	if version := endOfList(e); version != "" {
		s.listed(version)
	}
	select {
	case to <- e:
		return true
	case <-stopped:
		return false
	}
}

// endOfList returns the resource version of the event that follows the last object of a list that is
// streamed; empty for all other events.
func endOfList(e watch.Event) string {
	if e.Type != watch.Bookmark {
		return ""
	}
	bookmark, err := meta.Accessor(e.Object)
	if err != nil || bookmark.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return ""
	}
	return bookmark.GetResourceVersion()
}

// older reports whether resource version a comes before b. It is false if either is not a number.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// leap is further than resource versions get while a process looks away: 1,000 writes a second take more than a
// day for it. etcd's documentation has those who restore a snapshot skip ten times as many.
const leap = 100_000_000

// leapt reports whether resource version now is a leap after before. It is false if either is not a number.
func leapt(before, now string) bool {
	from, err := strconv.ParseUint(before, 10, 64)
	if err != nil || from == 0 {
		return false
	}
	to, err := strconv.ParseUint(now, 10, 64)
	return err == nil && to >= from && to-from >= leap
}
