package isolated

import (
	"context"
	"slices"
	"sync"

	"waybill.dev/waybill/sync/render"
)

// turns lets no more than so many render at a time. Who waits is served in order of arrival among those
// that are rendered for the same, and these by turns: what one of them has to render, however much that
// is, keeps others waiting for one turn each time, and not for all.
type turns struct {
	mu   sync.Mutex
	free int
	// waiting are those who wait, by whom it is for. order has each of these once, who is next first.
	waiting map[string][]chan struct{}
	order   []string
}

func newTurns(n int) *turns { return &turns{free: n, waiting: map[string][]chan struct{}{}} }

// acquire waits for a turn, until ctx ends.
func (t *turns) acquire(ctx context.Context) error {
	if t.tryAcquire() {
		return nil
	}
	whom, ready := render.TermsOf(ctx).For, make(chan struct{})
	t.enter(whom, ready)
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		t.leave(whom, ready)
		return ctx.Err()
	}
}

// tryAcquire takes a turn if one is free, which is none as long as somebody waits.
func (t *turns) tryAcquire() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free == 0 {
		return false
	}
	t.free--
	return true
}

// release gives a turn to who is next.
func (t *turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	t.serve()
}

func (t *turns) enter(whom string, ready chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting[whom]) == 0 {
		t.order = append(t.order, whom)
	}
	t.waiting[whom] = append(t.waiting[whom], ready)
	t.serve() // a turn may have come free since
}

// leave takes out who does not wait any longer, or gives the turn back that it has got meanwhile.
func (t *turns) leave(whom string, ready chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.waiting[whom], ready)
	if at < 0 {
		t.free++
		t.serve()
		return
	}
	t.keep(whom, slices.Delete(t.waiting[whom], at, at+1))
	if t.waiting[whom] == nil {
		t.order = slices.DeleteFunc(t.order, func(other string) bool { return other == whom })
	}
}

// serve gives what is free to those who wait. The caller holds the lock.
func (t *turns) serve() {
	for t.free > 0 && len(t.order) > 0 {
		whom := t.order[0]
		t.order = t.order[1:]
		close(t.waiting[whom][0])
		t.free--
		if t.keep(whom, t.waiting[whom][1:]); t.waiting[whom] != nil {
			t.order = append(t.order, whom)
		}
	}
}

// keep sets who waits. The caller holds the lock.
func (t *turns) keep(whom string, waiting []chan struct{}) {
	if len(waiting) == 0 {
		delete(t.waiting, whom)
		return
	}
	t.waiting[whom] = waiting
}
