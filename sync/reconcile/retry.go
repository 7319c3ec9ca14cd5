package reconcile

import "time"

// Retry says when to try again what failed in a job or elsewhere outside of a pass, which the
// kernel's back-off knows nothing of. In the zero value nothing has failed. It is not safe for
// concurrent use.
type Retry struct {
	// At is when to try again; zero if time does not trigger that.
	At time.Time
	// Failures is the number of failures in a row.
	Failures int
}

// Failed counts a failure, and sets At to the end of the back-off, which is that of the kernel.
func (r *Retry) Failed(backoff func(failures int) time.Duration) {
	r.Failures++
	r.At = time.Now().Add(backoff(r.Failures))
}

// Ended takes in how a try has ended. What stalled is not tried again by time, but counts as a failure.
func (r *Retry) Ended(err error, backoff func(failures int) time.Duration) {
	switch {
	case err == nil:
		*r = Retry{}
	case IsStalled(err):
		*r = Retry{Failures: r.Failures + 1}
	default:
		r.Failed(backoff)
	}
}

// Due reports whether a time is set for another try, and has come.
func (r *Retry) Due(now time.Time) bool { return !r.At.IsZero() && !r.At.After(now) }

// UntilNext returns the time until the earliest of the given times that come after began, which is
// when the pass began; zero if there is none. It ignores what was due by then: the pass has either
// handled that, or waits for something whose end is an event.
func UntilNext(began time.Time, due ...time.Time) time.Duration {
	var next time.Time
	for _, at := range due {
		if at.After(began) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		return 0
	}
	return max(time.Until(next), time.Millisecond)
}
