package turns

import (
	"context"
	"slices"
	"sync"
)

// Turns is a semaphore that is shared fairly. Each turn is taken for a user of it, such as a namespace:
// users are served in rotation, and the waiters of each in order of arrival. So one with many waiters
// keeps the others waiting for one turn each time, and not for all.
type Turns struct {
	mu   sync.Mutex
	free int
	// even is true if each may hold at most as many turns as it leaves free.
	even bool
	// held counts the turns that are taken, by whom they are for.
	held map[string]int
	// waiting has the waiters, by whom the turn is for. order has each of these once, the next one first.
	waiting map[string][]chan struct{}
	order   []string
}

// New returns Turns of which n can be taken at a time, no matter for whom.
func New(n int) *Turns {
	return &Turns{free: n, held: map[string]int{}, waiting: map[string][]chan struct{}{}}
}

// NewEven returns Turns of which n can be taken at a time. No more of them are taken for one than are left
// free, unless there is only one: there are some for those that come later, even if the others never
// release theirs.
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

// Release gives a turn that was theirs to the next waiter.
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

// leave removes a waiter that does not wait any longer, or gives the turn back that it has got meanwhile.
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

// keep sets the waiters. The caller holds the lock.
func (t *Turns) keep(whom string, waiting []chan struct{}) {
	if len(waiting) == 0 {
		delete(t.waiting, whom)
		return
	}
	t.waiting[whom] = waiting
}
