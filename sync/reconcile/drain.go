package reconcile

import (
	"context"
	"sync"
	"time"
)

// settleTime bounds how long jobs may take to record their progress after their contexts were canceled.
const settleTime = 15 * time.Second

// Drain lets the jobs of a process finish before the process ends, so that no Helm action is
// aborted that needs only a moment more. All Jobs that write share one Drain; nil drains nothing.
type Drain struct {
	grace  time.Duration
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running int
	idle    chan struct{}
}

// NewDrain returns a drain that gives jobs the grace period to end by themselves.
func NewDrain(grace time.Duration) *Drain {
	ctx, cancel := context.WithCancel(context.Background())
	return &Drain{grace: grace, ctx: ctx, cancel: cancel, idle: make(chan struct{})}
}

// Context ends when the grace period for jobs is over. Everything that jobs need must last as long.
func (d *Drain) Context() context.Context { return d.ctx }

// Start makes the drain a Runnable of a manager, which holds its lease until Start returns. Once
// ctx has ended, no further job begins. Running jobs have the grace period to end by themselves;
// then Context ends, which cancels them, and Start waits until they have ended.
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

// Draining reports whether the process is about to end. If so, a job cannot rely on a later pass to
// write its result to a status.
func (d *Drain) Draining() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// begin counts a job in; it returns false if jobs may no longer begin.
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

// signal notifies Start, once, when no job is left. The caller holds the lock.
func (d *Drain) signal() {
	if d.closed && d.running == 0 {
		close(d.idle)
	}
}
