package delivery

import (
	"slices"
	"time"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// Phase is what a Delivery is at.
type Phase int

const (
	// Unavailable: the cluster cannot be used; State.Lost says why.
	Unavailable Phase = iota
	// New: nothing was tried since the cluster can be used.
	New
	// Queued: a job waits for its turn in the cluster.
	Queued
	// Working: a job is at work.
	Working
	// Failed: the last job did not bring everything about. It is repeated after a back-off, or when an
	// event of the cluster makes another try worthwhile.
	Failed
	// Waiting: something has to be there, or gone, first. An event of the cluster says when it is.
	Waiting
	// Delivered: the cluster has what was wanted, and is watched.
	Delivered
	// Contested: as Delivered, but another field manager keeps changing or deleting objects. Corrections
	// back off.
	Contested
)

// State is what a Delivery is at, as of the last Look or Set.
type State struct {
	Phase Phase
	// Lost is why the cluster cannot be used.
	Lost error
	// Digest is that of what was last tried; empty if nothing was since the cluster can be used.
	Digest string
	// Result is how the last job ended, and Ended that there was one. It stays until the next ends.
	Result apply.Result
	Ended  bool
	// News: this Look has taken in the end of a job.
	News bool
	// Tried is when the last job was asked for.
	Tried time.Time
	// Applied is how many objects are applied, coarsely: of a job that is at work, as last shown.
	Applied int
	// Slow: a job takes long. The owner is enqueued when Applied changes.
	Slow bool
	// Overdue: a job waits for its turn for long.
	Overdue bool
	// Contested names the objects that another field manager keeps changing or deleting, sorted.
	Contested []string
}

// Usable reports whether the cluster can be used.
func (s State) Usable() bool { return s.Phase != Unavailable }

// Busy reports whether a job is under way, whose end enqueues the owner.
func (s State) Busy() bool { return s.Phase == Queued || s.Phase == Working }

// Failed reports whether the last job did not bring everything about.
func (s State) Failed() bool { return s.Result.Err != nil || len(s.Result.Problems) > 0 }

// Clean reports whether the last job brought everything about.
func (s State) Clean() bool { return s.Ended && !s.Failed() && len(s.Result.Waiting) == 0 }

// worthRetrying reports whether a job failed for a reason whose end no event announces.
func worthRetrying(result apply.Result) bool {
	if result.Err != nil {
		return !reconcile.IsStalled(result.Err)
	}
	return slices.ContainsFunc(result.Problems, func(p manifest.Problem) bool { return !slices.Contains(result.Waiting, p.ID) })
}

// phase returns the phase as of now.
func (d *Delivery) phase(now time.Time) Phase {
	_, over := d.conflicts.going(now)
	switch {
	case d.state.Lost != nil || d.applier == nil:
		return Unavailable
	case d.working != "" && d.shown.Running():
		return Working
	case d.working != "" || d.pool.jobs.Running(d): // the latter has been dropped, and is about to end
		return Queued
	case d.state.Digest == "":
		return New
	case d.state.Failed():
		return Failed
	case len(d.state.Result.Waiting) > 0:
		return Waiting
	case !over.IsZero():
		return Contested
	default:
		return Delivered
	}
}

// turnPatience is how long a job may wait for its turn before it is Overdue.
const turnPatience = 30 * time.Second

// settle brings the state up to date, and has the owner enqueued when time changes it.
func (d *Delivery) settle(now time.Time) State {
	s := &d.state
	s.Phase = d.phase(now)
	s.Overdue = d.working != "" && s.Phase == Queued && !now.Before(s.Tried.Add(turnPatience))
	s.Applied, s.Slow = d.shown.Shown()
	if !s.Slow {
		s.Applied = reconcile.Coarse(d.counts.Counts())
	}
	contested, over := d.conflicts.going(now)
	s.Contested = contested
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if next := d.next(now, over); next > 0 {
		d.timer = time.AfterFunc(next, d.wake)
	}
	return *s
}

// next returns the time until another pass is worth it, apart from events of the cluster; zero if it is not.
func (d *Delivery) next(now, over time.Time) time.Duration {
	switch {
	case d.state.Phase == Unavailable:
		return 0
	case d.state.Busy():
		return reconcile.UntilNext(now, d.state.Tried.Add(turnPatience))
	}
	due := []time.Time{d.retry.At, over}
	if d.drifted {
		due = append(due, d.conflicts.due(d.drift))
	}
	if d.every > 0 {
		due = append(due, d.state.Tried.Add(d.every))
	}
	return reconcile.UntilNext(now, due...)
}
