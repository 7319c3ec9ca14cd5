package subscription

import (
	"context"
	"time"

	"waybill.dev/waybill/sync/reconcile"
)

// Options configures a Pool. All fields are required.
type Options[K comparable] struct {
	// Width is how many questions are asked of one server at a time.
	Width int
	// Wake enqueues an owner for another reconciliation. It is called from any goroutine, and must return at
	// once.
	Wake func(K)
	// Backoff returns the delay after that many failures in a row.
	Backoff func(failures int) time.Duration
}

// Pool has the subscriptions of one kind of owner, whose answers are of type A. It is safe for concurrent use.
type Pool[K comparable, A any] struct {
	options Options[K]
	jobs    *reconcile.Jobs[K, attempt[A]]
}

// attempt is how asking has ended.
type attempt[A any] struct {
	answer A
	err    error
}

// NewPool returns a Pool whose jobs end with ctx.
func NewPool[K comparable, A any](ctx context.Context, options Options[K]) *Pool[K, A] {
	panicked := func(err error) attempt[A] { return attempt[A]{err: err} }
	return &Pool[K, A]{options: options, jobs: reconcile.NewJobs(ctx, options.Width, options.Wake, panicked)}
}

// New returns the subscription of an owner, which has asked for nothing yet.
func (p *Pool[K, A]) New(owner K) Subscription[K, A] {
	return Subscription[K, A]{
		pool:  p,
		owner: owner,
		shown: reconcile.NewProgress(func() bool { return true }, func() { p.options.Wake(owner) }),
	}
}

// Drop drops the attempt of an owner that is gone, together with its subscription.
func (p *Pool[K, A]) Drop(owner K) { p.jobs.Drop(owner) }
