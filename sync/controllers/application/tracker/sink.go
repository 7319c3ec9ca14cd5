package tracker

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/sync/cluster/watch"
)

// sink receives what one watch of a kind delivers.
type sink struct {
	kind *kind
	feed *watch.Feed[*Object]
	// synced: the watch has delivered all existing objects once.
	synced bool
	// refused is since when the API server has answered with errors only; zero if it does not.
	refused time.Time
}

// current reports whether the watch is the current one of its kind. The caller holds the lock.
func (s *sink) current() bool { return s.kind.sink == s }

// Put implements watch.Sink.
func (s *sink) Put(after *Object) {
	c, k := s.kind.tracker, s.kind
	c.mu.Lock()
	if !s.current() {
		c.mu.Unlock()
		return
	}
	before := k.objects[after.Namespace][after.Name]
	if before != nil && !watch.Older(before.Version, after.Version) && before.UID == after.UID {
		c.mu.Unlock()
		return // the answer to our own write came first
	}
	k.set(after)
	c.mu.Unlock()
	c.changed(before, after)
}

// Drop implements watch.Sink.
func (s *sink) Drop(seen *Object) {
	c, k := s.kind.tracker, s.kind
	c.mu.Lock()
	before := k.objects[seen.Namespace][seen.Name]
	if !s.current() || before == nil {
		c.mu.Unlock()
		return
	}
	k.unset(before)
	c.mu.Unlock()
	c.changed(before, nil)
}

// transition is a change of one object.
type transition struct{ before, after *Object }

// Replace implements watch.Sink. It compares what is known with what exists, so that no change is
// lost that happened while there was no watch. Objects that a restored API server has in an older
// version are taken as they are.
func (s *sink) Replace(all []*Object, _ string) {
	c, k := s.kind.tracker, s.kind
	c.mu.Lock()
	if !s.current() {
		c.mu.Unlock()
		return
	}
	var transitions []transition
	listed := make(map[*Object]bool, len(all))
	for _, after := range all {
		before := k.objects[after.Namespace][after.Name]
		if before != nil && before.UID == after.UID && before.Version == after.Version {
			listed[before] = true
			continue
		}
		k.set(after)
		listed[after] = true
		transitions = append(transitions, transition{before, after})
	}
	transitions = append(transitions, k.unsetAllBut(listed)...)
	c.mu.Unlock()
	for _, t := range transitions {
		c.changed(t.before, t.after)
	}
}

// unsetAllBut removes the objects that are not listed. The caller holds the lock.
func (k *kind) unsetAllBut(listed map[*Object]bool) []transition {
	var gone []transition
	for _, objects := range k.objects {
		for _, o := range objects {
			if !listed[o] {
				gone = append(gone, transition{before: o})
			}
		}
	}
	for _, t := range gone {
		k.unset(t.before)
	}
	return gone
}

// fared updates the state of the kind by that of the watch.
func (s *sink) fared(state watch.State) {
	c, k := s.kind.tracker, s.kind
	c.mu.Lock()
	if !s.current() {
		c.mu.Unlock()
		return
	}
	before := k.state.Phase
	next := k.state
	switch {
	case state.Synced:
		s.synced, s.refused = true, time.Time{}
		k.failures = 0
		next = State{Phase: Watched, Resource: k.state.Resource}
	case watch.IsKindNotFound(state.Err) && (s.synced || state.Ended):
		s.replace()
	case watch.IsKindNotFound(state.Err): // a new kind may not be served yet
	case state.Ended:
		if k.failures >= tolerated || before != Watched {
			next.Phase, next.Err = Denied, k.denied(state.Err)
		}
		k.sink = nil
		k.tryLater()
	case before == Starting: // overdue reports when that takes too long
		next.Err = fmt.Errorf("watch %s: %w", k.resource(), watch.Stable(state.Err))
	case before == Denied, before == Watched && !s.distrusts(state.Err): // keep what was known
	default:
		next.Phase, next.Err = Failing, fmt.Errorf("watch %s: %w", k.resource(), watch.Stable(state.Err))
	}
	changed := k.become(next)
	c.mu.Unlock()
	k.tell(nil, changed)
}

// distrusts records an error of the watch, and reports whether what the watch has delivered is no
// longer trusted, because the API server has refused for long to deliver it again. An API server
// that does not answer at all says nothing about the kind.
func (s *sink) distrusts(err error) bool {
	var answer apierrors.APIStatus
	switch {
	case !errors.As(err, &answer):
		s.refused = time.Time{}
	case s.refused.IsZero():
		s.refused = time.Now()
	}
	return !s.refused.IsZero() && time.Since(s.refused) > trusted
}

// replace ends the watch of a kind that is no longer served under its resource, and looks for
// another, such as one in another version. Until that is known, the old state is kept. The caller
// holds the lock.
func (s *sink) replace() {
	k := s.kind
	k.sink, k.lost = nil, k.state.Resource
	go func() {
		s.feed.End()
		k.resolve()
	}()
}

func (k *kind) resource() string { return k.state.Resource.GroupResource().String() }

func (k *kind) denied(err error) error {
	return fmt.Errorf("cannot list and watch %s: %w", k.resource(), watch.Stable(err))
}
