package delivery

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// Want is what an owner wants in a cluster.
type Want struct {
	// Digest identifies what is wanted, and how. It is never empty.
	Digest string
	// Work brings that about. It runs as a job, perhaps long after Set has returned. Without it, Set does
	// not begin a job.
	Work func(context.Context) apply.Result
	// Timeout bounds the time of the job.
	Timeout time.Duration
	// Every is after how long the job is repeated even if nothing seems to have changed; zero for never.
	Every time.Duration
	// LookedAt: objects that cannot be watched are checked by a job that begins after it. Without
	// Options.LookEvery, nothing else checks them.
	LookedAt time.Time
}

// Delivery is the objects of one owner in one cluster. Only Declare and Declared may be called while
// another call is under way.
type Delivery struct {
	pool  *Pool
	owner apply.Owner

	// cluster is the one last used, under one identity, and applier its applier; nil before the first use.
	cluster *cluster.Cluster
	applier *apply.Applier

	// state is what was last returned, and working the digest of the job that is under way; empty if none is.
	state   State
	working string
	// told counts the notifications of the cluster, of changes by others and of arrivals, and heard is
	// that count when the last job began.
	told  atomic.Int64
	heard int64
	// drifted says that drift is still to be corrected, as of the last Look, and drift which objects.
	drifted   bool
	drift     []manifest.ID
	conflicts conflicts
	// retry is when to try again what failed, or to look again at what cannot be watched. lookups is how
	// often in a row a kind was looked for that no event announces.
	retry   reconcile.Retry
	lookups int
	// every is that of what was last Set.
	every time.Duration
	timer *time.Timer

	// declared is what jobs have declared.
	declared atomic.Pointer[[]manifest.ID]
	counts   apply.Progress
	shown    *reconcile.Progress[int]
}

// String names the delivery in logs.
func (d *Delivery) String() string {
	if d.cluster == nil {
		return d.owner.String()
	}
	return fmt.Sprintf("%s in %s", d.owner, d.cluster.Name())
}

func (d *Delivery) wake() { d.pool.options.Wake(d.owner) }

// Use says that a cluster can be used under an identity; base is the cluster as Waybill itself sees it.
// If it is another one than before, or was engaged again, or could not be used meanwhile, everything is
// due.
func (d *Delivery) Use(found, base *cluster.Cluster) {
	if d.state.Lost = nil; d.cluster == found {
		return
	}
	d.leave()
	d.state.Digest = ""
	d.cluster, d.applier = found, d.pool.join(d, found, base)
}

// Lose says why the cluster cannot be used. It drops the job that is under way, and reports whether there was
// one: how that fails is of no interest when the cluster is back. Since it may come back, its objects are
// still watched.
func (d *Delivery) Lose(why error) (dropped bool) {
	dropped = d.drop()
	d.state.Lost, d.state.Digest = why, ""
	d.settle(time.Now())
	return dropped
}

func (d *Delivery) drop() bool {
	dropped := d.working != ""
	d.working = ""
	d.pool.jobs.Drop(d)
	return dropped
}

// leave drops the job and forgets the cluster.
func (d *Delivery) leave() {
	if d.drop(); d.cluster != nil {
		d.pool.leave(d, d.cluster)
	}
}

// Forget ends the delivery. What was delivered stays in the cluster.
func (d *Delivery) Forget() {
	if d.leave(); d.timer != nil {
		d.timer.Stop()
	}
}

// Look takes in what has happened since the last pass.
func (d *Delivery) Look() State {
	now := time.Now()
	result, ended := d.pool.jobs.Take(d)
	if d.state.News = ended; ended {
		d.take(result, now)
	}
	told := d.told.Load() != d.heard
	if d.drifted = false; told && ended {
		d.wake() // the one for that was spent on the end of the job
	} else if told && d.applier != nil {
		seen, known := d.applier.Observe(d.owner)
		d.drifted, d.drift = !known || !seen.Settled, d.accepted(seen.Drifted)
	}
	return d.settle(now)
}

// accepted leaves out the objects whose correction was refused: they are tried again with all else that
// failed.
func (d *Delivery) accepted(drift []manifest.ID) []manifest.ID {
	return slices.DeleteFunc(slices.Clone(drift), func(id manifest.ID) bool {
		return slices.ContainsFunc(d.state.Result.Problems, func(p manifest.Problem) bool { return p.ID.Key() == id.Key() })
	})
}

// Shortest and longest interval at which a kind that nothing defines is looked for. The interval grows,
// because most of these kinds never come.
const (
	minLookup = 2 * time.Minute
	maxLookup = 30 * time.Minute
)

// take takes in the result of a job.
func (d *Delivery) take(result apply.Result, now time.Time) {
	if d.state.Digest != d.working {
		d.retry = reconcile.Retry{}
	}
	d.state.Digest, d.working = d.working, ""
	d.state.Result, d.state.Ended = result, true
	d.conflicts.note(result.Changes, now, d.pool.options.Backoff)
	every := d.pool.options.LookEvery
	switch {
	case worthRetrying(result):
		d.retry.Failed(d.pool.options.Backoff)
	case result.Unseen && every > 0:
		d.retry = reconcile.Retry{At: now.Add(every)}
	case result.Unannounced && every > 0:
		d.retry = reconcile.Retry{At: now.Add(min(minLookup<<min(d.lookups, 8), maxLookup))}
		d.lookups++
	default:
		d.retry, d.lookups = reconcile.Retry{}, 0
	}
}

// Due reports whether Set would begin a job, as of the last Look.
func (d *Delivery) Due(w Want) bool {
	now, s := time.Now(), d.state
	switch {
	case s.Phase == Unavailable || s.Busy():
		return false
	case s.Digest != w.Digest, d.retry.Due(now):
		return true
	case (s.Result.Unseen || s.Result.Unannounced) && s.Tried.Before(w.LookedAt):
		return true
	case w.Every > 0 && !now.Before(s.Tried.Add(w.Every)):
		return true
	default:
		return d.drifted && !d.conflicts.due(d.drift).After(now)
	}
}

// Set says what is wanted, and begins a job if one is due. While another is under way, it begins none:
// its end enqueues the owner.
func (d *Delivery) Set(w Want) State {
	if d.every = w.Every; w.Work != nil && d.Due(w) {
		d.begin(w)
	}
	return d.settle(time.Now())
}

// begin begins a job.
func (d *Delivery) begin(w Want) {
	d.working, d.heard, d.drifted, d.state.Tried = w.Digest, d.told.Load(), false, time.Now()
	d.pool.jobs.Do(d.cluster.Name().String(), d, w.Digest, func(ctx context.Context) apply.Result {
		defer d.shown.Begin()()
		ctx, cancel := context.WithTimeout(ctx, w.Timeout)
		defer cancel()
		return w.Work(ctx)
	})
}

// Retry makes what failed due at once, and resets its back-off.
func (d *Delivery) Retry() { d.retry = reconcile.Retry{At: time.Now()} }

// Applier returns the applier of the cluster that is used, for Want.Work.
func (d *Delivery) Applier() *apply.Applier { return d.applier }

// Progress returns what counts how far a job is, for Want.Work.
func (d *Delivery) Progress() *apply.Progress { return &d.counts }

// Observe returns how the objects are, as apply.Applier.Observe does.
func (d *Delivery) Observe() (apply.Observation, bool) {
	if d.applier == nil {
		return apply.Observation{}, false
	}
	return d.applier.Observe(d.owner)
}

// Declare is called by a job. It keeps, for whatever follows, that objects are in the cluster or may be: of
// a job that is dropped nothing else is known.
func (d *Delivery) Declare(ids []manifest.ID) { d.declared.Store(&ids) }

// Declared returns ids, and what jobs have declared.
func (d *Delivery) Declared(ids []manifest.ID) []manifest.ID {
	if declared := d.declared.Load(); declared != nil {
		return inventory.Merge(ids, *declared)
	}
	return ids
}
