package git

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/go-logr/logr"
)

// flights lets concurrent callers of the same thing share one call. A call continues for as long as
// one of its callers waits, no matter which of them started it; every caller returns when its own
// context ends.
type flights[V any] struct {
	// fresh makes a caller share only calls that begin after it has asked, so that the answer is
	// never older than the question. Callers that find a call under way share the next one.
	fresh bool

	mu      sync.Mutex
	running map[string]*flight[V]
	queued  map[string]*flight[V]
}

// flight is one call and its waiting callers.
type flight[V any] struct {
	ctx     context.Context
	cancel  context.CancelFunc
	call    func(context.Context) (V, error)
	waiting int
	done    chan struct{}
	value   V
	err     error
}

func newFlights[V any](fresh bool) *flights[V] {
	return &flights[V]{
		fresh:   fresh,
		running: make(map[string]*flight[V]),
		queued:  make(map[string]*flight[V]),
	}
}

// do returns the result of call for key, either its own or one that it shares with another caller.
// The context passed to call has the values of one caller and no deadline.
func (g *flights[V]) do(ctx context.Context, key string, call func(context.Context) (V, error)) (V, error) {
	f := g.join(ctx, key, call)
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		g.leave(key, f)
		var none V
		return none, ctx.Err()
	}
}

// join finds the flight to wait for, or starts one.
func (g *flights[V]) join(ctx context.Context, key string, call func(context.Context) (V, error)) *flight[V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.running[key]
	if f != nil && g.fresh {
		if f = g.queued[key]; f == nil {
			f = newFlight(ctx, call)
			g.queued[key] = f
		}
	}
	if f == nil {
		f = newFlight(ctx, call)
		g.start(key, f)
	}
	f.waiting++
	return f
}

func newFlight[V any](ctx context.Context, call func(context.Context) (V, error)) *flight[V] {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &flight[V]{ctx: ctx, cancel: cancel, call: call, done: make(chan struct{})}
}

// leave stops waiting; the last caller to leave ends the call.
func (g *flights[V]) leave(key string, f *flight[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.waiting--
	if f.waiting > 0 {
		return
	}
	f.cancel()
	if g.queued[key] == f {
		delete(g.queued, key)
	}
	g.finish(key, f)
}

// start runs the call. The caller must hold the lock.
func (g *flights[V]) start(key string, f *flight[V]) {
	g.running[key] = f
	go func() {
		defer f.cancel()
		f.value, f.err = f.guarded()
		g.mu.Lock()
		g.finish(key, f)
		g.mu.Unlock()
		// Only now: a caller that comes back at once must not get this call again.
		close(f.done)
	}()
}

// guarded runs the call and turns a panic into an error: what servers say and repositories hold was
// written by others, and nothing else recovers in this goroutine.
func (f *flight[V]) guarded() (value V, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
			logr.FromContextOrDiscard(f.ctx).Error(err, "git source panicked", "stack", string(debug.Stack()))
		}
	}()
	return f.call(f.ctx)
}

// finish makes room for the next call, once. The caller must hold the lock.
func (g *flights[V]) finish(key string, f *flight[V]) {
	if g.running[key] != f {
		return
	}
	delete(g.running, key)
	if next := g.queued[key]; next != nil {
		delete(g.queued, key)
		g.start(key, next)
	}
}
