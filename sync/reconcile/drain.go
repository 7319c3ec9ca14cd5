package reconcile

import (
	"context"
	"sync"
	"time"
)

// settleTime bounds how long jobs may take to record how far they came, once they were told
// to end.
const settleTime = 15 * time.Second

// Drain lets the jobs of a process come to an end before the process does, so that no Helm
// action is broken off that needs only a moment more. One is shared by all Jobs that write;
// nil drains nothing.
type Drain struct {
	grace  time.Duration
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running int
	idle    chan struct{}
}

// NewDrain returns a drain that gives jobs that long to end by themselves.
func NewDrain(grace time.Duration) *Drain {
	ctx, cancel := context.WithCancel(context.Background())
	return &Drain{grace: grace, ctx: ctx, cancel: cancel, idle: make(chan struct{})}
}

// Context ends when the time for jobs is over. What jobs need has to last as long.
func (d *Drain) Context() context.Context { return d.ctx }

// Start makes the drain a Runnable of a manager, which holds its lease until Start returns.
// When ctx ends, no job begins any more. Those that run have the grace to end by themselves;
// then Context ends, which tells them to, and Start waits until they have.
func (d *Drain) Start(ctx context.Context) error {
	<-ctx.Done()
	d.close()
	d.await(d.grace)
	d.cancel()
	d.await(settleTime)
	return nil
}

func (d *Drain) await(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-d.idle:
	case <-timer.C:
	}
}

func (d *Drain) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.signal()
}

// Draining says that the process is about to end: of what a job comes to now, no pass can be relied
// on to write a status.
func (d *Drain) Draining() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// begin counts a job in; false where none may begin any more.
func (d *Drain) begin() bool {
	if d == nil {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.running++
	return true
}

// end counts a job out.
func (d *Drain) end() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	d.signal()
}

// signal tells Start when no job is left, once; the caller holds the lock.
func (d *Drain) signal() {
	if d.closed && d.running == 0 {
		close(d.idle)
	}
}
