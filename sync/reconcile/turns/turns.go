package turns

import (
	"context"
	"slices"
	"sync"
)

// Turns lets no more than so many do something at a time. Who waits is served in order of arrival among
// those that do it for the same, and these by turns: what one of them has to do, however much that is,
// keeps others waiting for one turn each time, and not for all.
type Turns struct {
	mu   sync.Mutex
	free int
	// even is true if nobody takes more turns than they leave free.
	even bool
	// held counts the turns that are taken, by whom it is for.
	held map[string]int
	// waiting are those who wait, by whom it is for. order has each of these once, who is next first.
	waiting map[string][]chan struct{}
	order   []string
}

// New returns Turns of which n can be taken at a time, whoever they are for.
func New(n int) *Turns {
	return &Turns{free: n, held: map[string]int{}, waiting: map[string][]chan struct{}{}}
}

// NewEven returns Turns of which n can be taken at a time. Nobody takes more of them than they leave free,
// unless there is but one: who comes later finds some, even if the others never give theirs back.
func NewEven(n int) *Turns {
	t := New(n)
	t.even = true
	return t
}

// Acquire waits for a turn, until ctx ends.
func (t *Turns) Acquire(ctx context.Context, whom string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if t.TryAcquire(whom) {
		return nil
	}
	ready := make(chan struct{})
	t.enter(whom, ready)
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		t.leave(whom, ready)
		return ctx.Err()
	}
}

// TryAcquire takes a turn if there is one for them.
func (t *Turns) TryAcquire(whom string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.may(whom) {
		return false
	}
	t.take(whom)
	return true
}

// Release gives a turn that was theirs to who is next.
func (t *Turns) Release(whom string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveBack(whom)
}

// may reports whether there is a turn for them. The caller holds the lock.
func (t *Turns) may(whom string) bool {
	return t.free > 0 && (!t.even || t.held[whom] < t.free)
}

// take takes a turn. The caller holds the lock.
func (t *Turns) take(whom string) {
	t.free--
	t.held[whom]++
}

// giveBack gives a turn back. The caller holds the lock.
func (t *Turns) giveBack(whom string) {
	t.free++
	if t.held[whom]--; t.held[whom] == 0 {
		delete(t.held, whom)
	}
	t.serve()
}

func (t *Turns) enter(whom string, ready chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting[whom]) == 0 {
		t.order = append(t.order, whom)
	}
	t.waiting[whom] = append(t.waiting[whom], ready)
	t.serve() // a turn may have come free since
}

// leave takes out who does not wait any longer, or gives the turn back that it has got meanwhile.
func (t *Turns) leave(whom string, ready chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.waiting[whom], ready)
	if at < 0 {
		t.giveBack(whom)
		return
	}
	t.keep(whom, slices.Delete(t.waiting[whom], at, at+1))
	if t.waiting[whom] == nil {
		t.order = slices.DeleteFunc(t.order, func(other string) bool { return other == whom })
	}
}

// serve gives what is free to those who wait. The caller holds the lock.
func (t *Turns) serve() {
	for {
		next := slices.IndexFunc(t.order, t.may)
		if next < 0 {
			return
		}
		whom := t.order[next]
		t.order = slices.Delete(t.order, next, next+1)
		close(t.waiting[whom][0])
		t.take(whom)
		if t.keep(whom, t.waiting[whom][1:]); t.waiting[whom] != nil {
			t.order = append(t.order, whom)
		}
	}
}

// keep sets who waits. The caller holds the lock.
func (t *Turns) keep(whom string, waiting []chan struct{}) {
	if len(waiting) == 0 {
		delete(t.waiting, whom)
		return
	}
	t.waiting[whom] = waiting
}
