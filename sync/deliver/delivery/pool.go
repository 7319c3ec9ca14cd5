package delivery

import (
	"context"
	"sync"
	"time"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/reconcile"
)

// Options configures a Pool. Fields without a comment to the contrary are required.
type Options struct {
	// Width is how many jobs run in one cluster at a time.
	Width int
	// Wake enqueues an owner for another pass. It is called from any goroutine, and must return at once.
	Wake func(apply.Owner)
	// Backoff returns the delay after that many failures in a row.
	Backoff func(failures int) time.Duration
	// Drain lets jobs finish before the process ends; nil ends them with it.
	Drain *reconcile.Drain
	// Status is apply.Options.Status: owners for which it returns true are also enqueued when the status of
	// an object changes. May be nil.
	Status func(apply.Owner) bool
	// LookEvery is how often objects that cannot be watched are checked. Zero if the owners say when, by
	// Want.LookedAt.
	LookEvery time.Duration
}

// Pool has the deliveries of one kind of owner. It is safe for concurrent use.
type Pool struct {
	options Options
	jobs    *reconcile.Jobs[*Delivery, apply.Result]

	// views has the clusters, each under one identity, that a delivery uses.
	views keyed.Map[*cluster.Cluster, *view]
}

// view is a cluster under one identity.
type view struct {
	applier *apply.Applier
	end     context.CancelFunc
	// users are the deliveries that use it, by owner, which a notification looks up without a lock; count is
	// how many there are. Without any, the view ends.
	users sync.Map
	count int
}

// NewPool returns a Pool without deliveries. Its jobs end with ctx.
func NewPool(ctx context.Context, options Options) *Pool {
	p := &Pool{options: options}
	wake := func(d *Delivery) { options.Wake(d.owner) }
	panicked := func(err error) apply.Result { return apply.Result{Err: err} }
	p.jobs = reconcile.NewJobs(ctx, options.Width, wake, panicked).DrainedBy(options.Drain)
	return p
}

// New returns the delivery of an owner to a cluster that cannot be used yet.
func (p *Pool) New(owner apply.Owner) *Delivery {
	d := &Delivery{pool: p, owner: owner, conflicts: conflicts{}}
	d.shown = reconcile.NewProgress(func() int { return reconcile.Coarse(d.counts.Counts()) }, d.wake)
	return d
}

// join makes a delivery a user of a cluster under one identity; base is the cluster as Waybill itself
// sees it.
func (p *Pool) join(d *Delivery, found, base *cluster.Cluster) (applier *apply.Applier) {
	p.views.Change(found, func(v *view) (*view, bool) {
		if v == nil {
			v = p.newView(found, base)
		}
		v.users.Store(d.owner, d)
		v.count++
		applier = v.applier
		return v, true
	})
	return applier
}

func (p *Pool) newView(found, base *cluster.Cluster) *view {
	ctx, end := context.WithCancel(found.Context())
	v := &view{end: end}
	v.applier = apply.New(ctx, found, apply.Options{
		Notify:       func(o apply.Owner) { p.tell(v, o) },
		Status:       p.options.Status,
		NotifyStatus: p.options.Wake,
		Rollbacks:    base,
	})
	return v
}

// leave ends join.
func (p *Pool) leave(d *Delivery, from *cluster.Cluster) {
	p.views.Change(from, func(v *view) (*view, bool) {
		v.applier.Forget(d.owner)
		v.users.Delete(d.owner)
		if v.count--; v.count == 0 {
			v.end()
		}
		return v, v.count > 0
	})
}

// tell notifies a delivery that others have changed one of its objects, or that what it waits for is there.
func (p *Pool) tell(v *view, owner apply.Owner) {
	if user, found := v.users.Load(owner); found {
		d := user.(*Delivery)
		d.told.Add(1)
		d.wake()
	}
}
