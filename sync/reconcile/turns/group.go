package turns

import (
	"sync"
	"time"
)

// Group counts what is under way, until it is closed: then nothing more begins, and what is under way can be
// awaited. It is safe for concurrent use.
type Group struct {
	mu     sync.Mutex
	count  int
	closed bool
	idle   chan struct{} // closed when the group is closed and nothing is under way
}

// NewGroup returns a Group in which nothing is under way.
func NewGroup() *Group { return &Group{idle: make(chan struct{})} }

// Begin counts one more, which ends with End; it returns false if the group is closed.
func (g *Group) Begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.count++
	}
	return !g.closed
}

// End counts one less.
func (g *Group) End() { g.change(-1, false) }

// Close has nothing more begin.
func (g *Group) Close() { g.change(0, true) }

// Closed reports whether Close was called.
func (g *Group) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Await waits until the group is closed and nothing is under way, or until limit is over.
func (g *Group) Await(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-g.idle:
	case <-timer.C:
	}
}

func (g *Group) change(by int, closes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.closed && g.count == 0
	g.count, g.closed = g.count+by, g.closed || closes
	if is := g.closed && g.count == 0; is && !was {
		close(g.idle)
	}
}
