package cluster

import (
	"sync"
	"time"
)

// settleTime bounds how long the connections of a cluster that was disengaged are kept for work that
// holds them: it has been told to end, and needs them to record how it ended.
const settleTime = 15 * time.Second

// holds counts the work that needs the connections of a cluster to the end.
type holds struct {
	mu    sync.Mutex
	count int
	over  bool          // nobody can take hold any more
	idle  chan struct{} // closed when it is over and nobody holds on
}

func newHolds() *holds { return &holds{idle: make(chan struct{})} }

// take keeps the connections until the function that it returns is called.
func (h *holds) take() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return func() {}
	}
	h.count++
	return sync.OnceFunc(h.release)
}

func (h *holds) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count--
	h.signal()
}

// settle waits until nobody holds the connections any more, for at most settleTime.
func (h *holds) settle() {
	h.mu.Lock()
	h.over = true
	h.signal()
	h.mu.Unlock()
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-h.idle:
	case <-timer.C:
	}
}

// signal closes idle, once, when it is over and nobody holds on. The caller holds the lock.
func (h *holds) signal() {
	if h.over && h.count == 0 {
		close(h.idle)
	}
}
