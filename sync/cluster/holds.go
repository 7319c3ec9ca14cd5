package cluster

import (
	"sync"
	"time"
)

// settleTime bounds how long the connections of a cluster that was disengaged are kept for work that
// holds them: its context is canceled, and it needs them to record its result.
const settleTime = 15 * time.Second

// holds counts the work that needs the connections of a cluster to the end.
type holds struct {
	mu    sync.Mutex
	count int
	over  bool          // no more holds are granted
	idle  chan struct{} // closed when it is over and all holds are released
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

// settle waits until all holds are released, for at most settleTime.
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

// signal closes idle, once, when it is over and all holds are released. The caller holds the lock.
func (h *holds) signal() {
	if h.over && h.count == 0 {
		close(h.idle)
	}
}
