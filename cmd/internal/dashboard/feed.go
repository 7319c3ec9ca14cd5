package dashboard

import (
	"errors"
	"strings"
	"sync"
	"time"
)

const (
	// maxStreams is how many pages may be open at a time, and maxStreamsEach how many of one user. Hidden
	// tabs have none.
	maxStreams     = 4000
	maxStreamsEach = 60
	// maxTouched is how many namespaces a stream remembers until it has asked whether they concern it.
	maxTouched = 100
)

var errTooMany = errors.New("too many pages are open")

// feed notifies the open pages of changes.
type feed struct {
	mu      sync.Mutex
	streams map[*stream]bool
	each    map[string]int // by name of the viewer
	// count goes up with each change, and last has what it was at the latest of a kind. It begins with the time, so that
	// what pages of a process before this one have seen is older than anything.
	count, begun uint64
	last         map[string]uint64
}

func newFeed() *feed {
	now := uint64(time.Now().UnixNano()) //nolint:gosec // it is after 1970
	return &feed{streams: map[*stream]bool{}, each: map[string]int{}, count: now, begun: now, last: map[string]uint64{}}
}

// stream is a page that is open.
type stream struct {
	about map[string]bool // the kinds
	// only has, as NAMESPACE/NAME, the one object of a kind that the page is about, where that is not all.
	only  map[string]string
	woken chan struct{}

	mu      sync.Mutex
	touched map[touch]bool
	// remarked is what the page is to say about how it is followed, and unsaid that it does not say so yet.
	remarked string
	unsaid   bool
}

// touch is what has changed: an object of a kind in a namespace. Without a namespace it is one that has none, or the state
// of a watch, and the zero one is the object that a page is about.
type touch struct{ kind, namespace string }

// subscribe returns a stream that is woken when an object of one of the kinds has changed, or of KIND/NAMESPACE/NAME that one, and
// the function that ends it; errTooMany if the viewer, or all together, have too many already.
func (f *feed) subscribe(v *viewer, kinds []string) (*stream, func(), error) {
	to := &stream{about: map[string]bool{}, only: map[string]string{}, woken: make(chan struct{}, 1), touched: map[touch]bool{}}
	for _, kind := range kinds {
		kind, one, alone := strings.Cut(kind, "/")
		to.about[kind] = true
		if alone {
			to.only[kind] = one
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.streams) >= maxStreams || f.each[v.name] >= maxStreamsEach {
		return nil, nil, errTooMany
	}
	f.streams[to] = true
	f.each[v.name]++
	return to, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.streams, to)
		if f.each[v.name]--; f.each[v.name] == 0 {
			delete(f.each, v.name)
		}
	}, nil
}

// now returns a number to give to catchUp: a page that is read after it has all changes until then.
func (f *feed) now() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// catchUp notifies a stream if something has changed since its page was read.
func (f *feed) catchUp(to *stream, seen uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for kind := range to.about {
		if max(f.last[kind], f.begun) > seen {
			to.tell(kind, "")
		}
	}
}

// tell wakes the streams that are about an object of a kind; those about any of the kind, without a name. It does not block.
func (f *feed) tell(kind, namespace, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	f.last[kind] = f.count
	for to := range f.streams {
		one, alone := to.only[kind]
		if to.about[kind] && (!alone || name == "" || one == namespace+"/"+name) {
			to.tell(kind, namespace)
		}
	}
}

// tell notifies a stream. It does not block.
func (s *stream) tell(kind, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.touched) >= maxTouched {
		s.touched = map[touch]bool{{}: true} // whatever it is
	}
	s.touched[touch{kind, namespace}] = true
	s.wake()
}

func (s *stream) wake() {
	select {
	case s.woken <- struct{}{}:
	default: // a notification is pending already
	}
}

// remark has the page say something about how it is followed; nothing if that is empty. It does not block.
func (s *stream) remark(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text != s.remarked {
		s.remarked, s.unsaid = text, true
		s.wake()
	}
}

// toSay returns what the page is to say, once.
func (s *stream) toSay() (text string, unsaid bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, unsaid = s.remarked, s.unsaid
	s.unsaid = false
	return text, unsaid
}

// take returns what has changed since it was called last.
func (s *stream) take() map[touch]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	touched := s.touched
	s.touched = map[touch]bool{}
	return touched
}
