package workers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/reconcile"
)

// State of a pool.
type State int32

const (
	// Learning: what the cluster has is not known yet, and no key is worked on.
	Learning State = iota
	// Working: keys are worked on as they are added.
	Working
	// Ended: the cluster was disengaged.
	Ended
)

// Options of a pool. Fields without a comment about their default are required.
type Options[K comparable, R any] struct {
	// Name is that of the controller, for the log.
	Name string
	// Workers is how many keys are worked on at a time. Default: 1.
	Workers int
	// MinBackoff and MaxBackoff bound the delay after a failure, which doubles with each one in a row.
	MinBackoff, MaxBackoff time.Duration
	// Learn finds out what the cluster has: it returns the keys to begin with, and what is known of each.
	// It is called again until it succeeds.
	Learn func(ctx context.Context) (map[K]R, error)
	// Work brings one key to what is wanted, and returns what is to be kept of it. When it is called
	// again after an error is described with the package.
	Work func(ctx context.Context, key K) (R, error)
	// Changed is called when the result of a key is another one than before.
	Changed func(key K)
}

// Result is what came of a key when it was worked on last.
type Result[R any] struct {
	Value R
	Err   error
}

// Cluster is what a pool knows of its cluster, which is a cluster.Cluster.
type Cluster interface {
	Name() types.NamespacedName
	// Reachable returns why the cluster is lost; nil if it is not.
	Reachable() error
}

// Pool works on keys in one cluster. It is safe for concurrent use.
type Pool[K comparable, R any] struct {
	cluster Cluster
	options Options[K, R]
	queue   workqueue.TypedRateLimitingInterface[K]
	state   atomic.Int32
	back    chan struct{}           // holds one
	results keyed.Map[K, Result[R]] // without those that are zero
}

// New returns a pool for a cluster. It does nothing until Run is called.
func New[K comparable, R any](c Cluster, options Options[K, R]) *Pool[K, R] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](options.MinBackoff, options.MaxBackoff)
	return &Pool[K, R]{
		cluster: c, options: options, queue: workqueue.NewTypedRateLimitingQueue(limiter),
		back: make(chan struct{}, 1),
	}
}

// Run works on keys until ctx ends. It must be called only once.
func (p *Pool[K, R]) Run(ctx context.Context) {
	defer p.state.Store(int32(Ended))
	defer context.AfterFunc(ctx, p.queue.ShutDown)()
	if !p.learn(ctx) {
		return
	}
	p.state.Store(int32(Working))
	var workers sync.WaitGroup
	for range max(p.options.Workers, 1) {
		workers.Go(func() {
			for p.next(ctx) {
			}
		})
	}
	workers.Wait()
}

// State returns the state of the pool.
func (p *Pool[K, R]) State() State { return State(p.state.Load()) }

// Add has keys worked on as soon as a worker is free.
func (p *Pool[K, R]) Add(keys ...K) {
	for _, key := range keys {
		p.queue.Add(key)
	}
}

// AddAfter has a key worked on after a delay.
func (p *Pool[K, R]) AddAfter(key K, delay time.Duration) { p.queue.AddAfter(key, delay) }

// Retry has everything that failed tried again now, unless it is stalled. It is to be called when the
// cluster is back.
func (p *Pool[K, R]) Retry() {
	select {
	case p.back <- struct{}{}:
	default: // it is notified already
	}
	for key, result := range p.Results() {
		if result.Err != nil && !reconcile.IsStalled(result.Err) {
			p.queue.Add(key)
		}
	}
}

// Result returns what came of a key last. It is zero for one of which nothing is known yet.
func (p *Pool[K, R]) Result(key K) Result[R] { return p.results.Get(key) }

// Results returns all results that are not zero.
func (p *Pool[K, R]) Results() map[K]Result[R] { return p.results.All() }

// learn calls Learn until it succeeds. It returns false if ctx has ended.
func (p *Pool[K, R]) learn(ctx context.Context) bool {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[struct{}](p.options.MinBackoff, p.options.MaxBackoff)
	for ctx.Err() == nil {
		known, err := p.options.Learn(ctx)
		if err == nil {
			for key, value := range known {
				p.keep(key, Result[R]{Value: value})
				p.queue.Add(key)
			}
			return true
		}
		if ctx.Err() == nil {
			ctrl.Log.WithName(p.options.Name).Error(err, "find out what the cluster has, will try again", "cluster", p.cluster.Name())
		}
		select {
		case <-ctx.Done():
		case <-p.back:
		case <-time.After(limiter.When(struct{}{})):
		}
	}
	return false
}

// next works on one key. It returns false if there will be no more.
func (p *Pool[K, R]) next(ctx context.Context) bool {
	key, ended := p.queue.Get()
	if ended {
		return false
	}
	defer p.queue.Done(key)
	if ctx.Err() != nil {
		return true
	}
	got := p.work(ctx, key)
	changed := p.keep(key, got)
	p.schedule(key, got.Err)
	if changed {
		p.options.Changed(key)
	}
	return true
}

func (p *Pool[K, R]) work(ctx context.Context, key K) (got Result[R]) {
	defer reconcile.Recover(ctx, fmt.Sprint(p.options.Name, " ", key), func(err error) { got.Err = err })
	value, err := p.options.Work(ctx, key)
	return Result[R]{value, err}
}

// keep keeps the result of a key, and reports whether it has changed.
func (p *Pool[K, R]) keep(key K, got Result[R]) (changed bool) {
	last := p.results.Change(key, func(Result[R]) (Result[R], bool) {
		return got, got.Err != nil || !reflect.ValueOf(&got.Value).Elem().IsZero()
	})
	return text(last.Err) != text(got.Err) || !reflect.DeepEqual(last.Value, got.Value)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// schedule says when a key is worked on again that came out like that.
func (p *Pool[K, R]) schedule(key K, err error) {
	after, waits := reconcile.IsWaiting(err)
	switch {
	case p.lost(err): // Retry follows
		p.queue.Forget(key)
	case err == nil, waits, reconcile.IsStalled(err):
		p.queue.Forget(key)
		if after > 0 {
			p.queue.AddAfter(key, after)
		}
	default:
		p.queue.AddRateLimited(key)
	}
}

// lost reports whether err means that the cluster is lost, as it is still.
func (p *Pool[K, R]) lost(err error) bool {
	return p.cluster.Reachable() != nil && (errors.Is(err, cluster.ErrUnreachable) || errors.Is(err, cluster.ErrNotEngaged))
}
