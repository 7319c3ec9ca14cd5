package release

import (
	"context"
	"fmt"
	"time"
)

// clock ends an action when its time is up. It stands still while the action waits for something that has a
// time of its own. Only the action itself uses it.
type clock struct {
	timer *time.Timer
	// left is how much time there was when the timer was last started, at since.
	left  time.Duration
	since time.Time
}

// start starts the clock. The context ends when its time is up, or stop is called.
func (c *clock) start(ctx context.Context, timeout time.Duration) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	up := fmt.Errorf("action took longer than %s: %w", timeout, context.DeadlineExceeded)
	c.left, c.since, c.timer = timeout, time.Now(), time.AfterFunc(timeout, func() { cancel(up) })
	return ctx, func() {
		c.timer.Stop()
		cancel(nil)
	}
}

// during does what the time of the action does not count for.
func (c *clock) during(do func()) {
	if c.timer.Stop() {
		c.left -= time.Since(c.since)
		defer func() {
			c.since = time.Now()
			c.timer.Reset(max(c.left, 0))
		}()
	}
	do()
}
