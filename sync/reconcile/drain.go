package reconcile

import (
	"context"
	"time"

	"waybill.dev/waybill/sync/reconcile/turns"
)

// settleTime bounds how long jobs may take to record their progress after their contexts were canceled.
const settleTime = 15 * time.Second

// Drain lets the jobs of a process finish before the process ends, so that no Helm action is
// aborted that needs only a moment more. All Jobs that write share one Drain; nil drains nothing.
type Drain struct {
	grace  time.Duration
	ctx    context.Context
	cancel context.CancelFunc
	jobs   *turns.Group
}

// NewDrain returns a drain that gives jobs the grace period to end by themselves.
func NewDrain(grace time.Duration) *Drain {
	ctx, cancel := context.WithCancel(context.Background())
	return &Drain{grace: grace, ctx: ctx, cancel: cancel, jobs: turns.NewGroup()}
}

// Context ends when the grace period for jobs is over. Everything that jobs need must last as long.
func (d *Drain) Context() context.Context { return d.ctx }

// Start makes the drain a Runnable of a manager, which holds its lease until Start returns. Once
// ctx has ended, no further job begins. Running jobs have the grace period to end by themselves;
// then Context ends, which cancels them, and Start waits until they have ended.
func (d *Drain) Start(ctx context.Context) error {
	<-ctx.Done()
	d.jobs.Close()
	d.jobs.Await(d.grace)
	d.cancel()
	d.jobs.Await(settleTime)
	return nil
}

// Draining reports whether the process is about to end. If so, a job cannot rely on a later pass to
// write its result to a status.
func (d *Drain) Draining() bool { return d != nil && d.jobs.Closed() }

// begin counts a job in; it returns false if jobs may no longer begin.
func (d *Drain) begin() bool { return d == nil || d.jobs.Begin() }

// end counts a job out.
func (d *Drain) end() {
	if d != nil {
		d.jobs.End()
	}
}
