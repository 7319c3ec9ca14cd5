package reconcile

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile/turns"
)

// Jobs runs slow work outside of the workers: a fetch, an apply in one cluster, a Helm action.
// There is at most one job per key. Jobs run in lanes, each with its own width, so that a lane
// whose work hangs (a dead cluster, a dead git server) does not block others. When a job ends, it
// calls the wake function, which enqueues an object.
type Jobs[K comparable, R any] struct {
	ctx   context.Context
	width int
	wake  func(K)
	fail  func(error) R
	drain *Drain
	// whom returns for whom a job is, such as a namespace: these take turns in each lane; nil if
	// that makes no difference.
	whom func(K) string
	// settle is called with the result of work that has ended; nil for nothing.
	settle func(context.Context, R)

	mu    sync.Mutex
	jobs  map[K]*job[R]
	lanes map[string]*lane
}

type job[R any] struct {
	input  string
	cancel context.CancelFunc
	done   bool
	result R
	// dropped is true if the result must be discarded.
	dropped bool
}

type lane struct {
	slots *turns.Turns
	users int
}

// NewJobs returns Jobs of which at most width run in one lane at a time. They end with ctx. wake is
// called with the key of each job that has ended. fail returns the result of a job that panicked:
// the panic is logged and counted, and ends neither the process nor other jobs.
func NewJobs[K comparable, R any](ctx context.Context, width int, wake func(K), fail func(error) R) *Jobs[K, R] {
	return &Jobs[K, R]{ctx: ctx, width: width, wake: wake, fail: fail, jobs: map[K]*job[R]{}, lanes: map[string]*lane{}}
}

// DrainedBy makes d wait for the jobs before the process ends. Once it drains, no further job
// begins, and wake is not called for such a job. DrainedBy must be called before the first Do.
func (j *Jobs[K, R]) DrainedBy(d *Drain) *Jobs[K, R] {
	j.drain = d
	return j
}

// TakingTurns makes jobs that wait in a lane take turns by whom they are for, such as a namespace. In a
// lane with room for more than one job, the jobs for one of them never take all of it. TakingTurns must be
// called before the first Do.
func (j *Jobs[K, R]) TakingTurns(whom func(K) string) *Jobs[K, R] {
	j.whom = whom
	return j
}

// Settling makes settle part of every job, after its work. A job that settles takes no room in its
// lane. Settling must be called before the first Do.
func (j *Jobs[K, R]) Settling(settle func(ctx context.Context, result R)) *Jobs[K, R] {
	j.settle = settle
	return j
}

// Do returns, once, the result of the work for key with that input, and true. If there is none, it
// starts the work in the lane and returns false. While work for the key runs with another input, it
// starts nothing; call Do again when that has ended.
func (j *Jobs[K, R]) Do(laneName string, key K, input string, work func(context.Context) R) (R, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var none R
	if current := j.jobs[key]; current != nil {
		if !current.done {
			return none, false
		}
		delete(j.jobs, key)
		if current.input == input {
			return current.result, true
		}
	}
	ctx, cancel := context.WithCancel(j.ctx)
	started := &job[R]{input: input, cancel: cancel}
	j.jobs[key] = started
	go j.run(ctx, laneName, j.enter(laneName), key, started, work)
	return none, false
}

// Take returns, once, the result of the work for key, whatever its input was, and true; false if there
// is none that has ended.
func (j *Jobs[K, R]) Take(key K) (R, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	current := j.jobs[key]
	if current == nil || !current.done {
		var none R
		return none, false
	}
	delete(j.jobs, key)
	return current.result, true
}

// Running reports whether work for the key is in progress.
func (j *Jobs[K, R]) Running(key K) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	current := j.jobs[key]
	return current != nil && !current.done
}

// Drop cancels the work for key and discards its result. wake is still called when work in progress
// ends.
func (j *Jobs[K, R]) Drop(key K) {
	j.mu.Lock()
	defer j.mu.Unlock()
	current := j.jobs[key]
	if current == nil {
		return
	}
	if current.done {
		delete(j.jobs, key)
		return
	}
	current.dropped = true
	current.cancel()
}

func (j *Jobs[K, R]) run(ctx context.Context, laneName string, l *lane, key K, current *job[R], work func(context.Context) R) {
	defer current.cancel()
	var result R
	begun, refused := false, false
	whom := j.whomOf(key)
	if l.slots.Acquire(ctx, whom) == nil {
		if begun = j.drain.begin(); begun {
			result = j.guarded(ctx, key, work)
		}
		refused = !begun
		l.slots.Release(whom)
	}
	if begun {
		result = j.settled(ctx, key, result)
	}
	if !begun {
		j.Drop(key)
	}
	j.end(laneName, key, current, result)
	if j.ctx.Err() == nil && !refused {
		j.wake(key)
	}
}

// settled has a job settle, and counts it out of the drain. It returns the result of the job.
func (j *Jobs[K, R]) settled(ctx context.Context, key K, result R) R {
	defer j.drain.end()
	if j.settle == nil {
		return result
	}
	return j.guarded(ctx, key, func(ctx context.Context) R {
		j.settle(ctx, result)
		return result
	})
}

// guarded runs the work and turns a panic into a failed result.
func (j *Jobs[K, R]) guarded(ctx context.Context, key K, work func(context.Context) R) (result R) {
	defer Recover(ctx, fmt.Sprint(key), func(err error) { result = j.fail(err) })
	return work(ctx)
}

// Recover is to be deferred by work that runs outside of the workers of a controller. It turns a panic into
// an error that fail is called with, as controller-runtime does with the panic of a reconciler: what is
// worked on was written by others, and the process serves all users. The panic is logged and counted.
func Recover(ctx context.Context, key string, fail func(error)) {
	r := recover()
	if r == nil {
		return
	}
	panicsTotal.Inc()
	err := Failed(v1alpha1.ProgressingWithRetryReason, "internal error: %v", r)
	ctrl.LoggerFrom(ctx).Error(err, "job panicked", "key", key, "stack", string(debug.Stack()))
	fail(err)
}

// enter counts a job into a lane. The caller holds the lock.
func (j *Jobs[K, R]) enter(name string) *lane {
	l := j.lanes[name]
	if l == nil {
		l = &lane{slots: turns.New(j.width)}
		if j.whom != nil {
			l.slots = turns.NewEven(j.width)
		}
		j.lanes[name] = l
	}
	l.users++
	return l
}

func (j *Jobs[K, R]) whomOf(key K) string {
	if j.whom == nil {
		return ""
	}
	return j.whom(key)
}

func (j *Jobs[K, R]) end(laneName string, key K, current *job[R], result R) {
	j.mu.Lock()
	defer j.mu.Unlock()
	current.done, current.result = true, result
	if current.dropped {
		delete(j.jobs, key)
	}
	l := j.lanes[laneName]
	if l.users--; l.users == 0 {
		delete(j.lanes, laneName)
	}
}
