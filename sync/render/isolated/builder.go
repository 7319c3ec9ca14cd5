package isolated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"waybill.dev/waybill/sync/reconcile/turns"
	"waybill.dev/waybill/sync/render"
)

// Defaults of Options.
const (
	DefaultMemory    = 384 << 20
	DefaultProcesses = 2
	DefaultQuick     = 5 * time.Second
	DefaultTime      = 2 * time.Minute
)

// unused is how long an idle process is kept. A small kustomization takes five times as long in a process that
// is started for it (BenchmarkBuild).
const unused = time.Minute

// Options bound a Builder. Zero fields take the defaults.
type Options struct {
	// Memory is how many bytes a kustomization or a chart may take, of which some 40 MiB are those of the
	// program. Default: DefaultMemory.
	Memory int64
	// Processes is how many are rendered at a time; others wait. Default: DefaultProcesses.
	Processes int
	// Quick is how long rendering may take whatever others do. What takes longer may fill all processes
	// but one, if there are two or more; others begin again when one of them has ended. Default:
	// DefaultQuick.
	Quick time.Duration
	// Time is how long a chart or a kustomization may be rendered, without the time that it waits for
	// others. Default: DefaultTime.
	Time time.Duration
}

// Why something was ended.
var (
	// errCrowded: it is not quick, and others are not, either. It begins again.
	errCrowded = errors.New("others that take long are being rendered")
	// errTime: it took longer than it may.
	errTime = errors.New("it takes too long")
	// errMemory: it took more memory than it may.
	errMemory = errors.New("it takes too much memory")
	// errStack: its calls filled the stack.
	errStack = errors.New("its stack is full")
)

// Builder renders kustomizations and charts in processes of its own. All share the same processes.
type Builder struct {
	memory      int64
	quick, time time.Duration
	// turns are those of everything, and long of these those of what is not quick.
	turns, long *turns.Turns

	mu sync.Mutex
	// idle processes; the last one was used last.
	idle []*process
}

// task is something to render.
type task interface {
	// request returns what p is to do. What came of an earlier request is forgotten.
	request(p *process) (request, error)
	// take takes a part of what was rendered.
	take(turn) error
	// answer answers a question that came up.
	answer(context.Context, turn) (reply, error)
	// most is how many bytes a process may say about it, and time how long it may take.
	most() int64
	time() time.Duration
}

// NewBuilder returns a Builder. The program must call Main before anything else.
func NewBuilder(o Options) *Builder {
	processes := cmp.Or(o.Processes, DefaultProcesses)
	return &Builder{
		memory: cmp.Or(o.Memory, DefaultMemory),
		quick:  cmp.Or(o.Quick, DefaultQuick),
		time:   cmp.Or(o.Time, DefaultTime),
		turns:  turns.New(processes),
		long:   turns.New(max(1, processes-1)),
	}
}

// limit returns how long something may be rendered.
func (b *Builder) limit(other time.Duration) time.Duration {
	if other > 0 {
		return min(b.time, other)
	}
	return b.time
}

// do renders a task. The error is a *fault, if it is what the renderer itself returned; the failure of an
// answer; errMemory, errStack or errTime; that of ctx; or an internal one, with another cause.
func (b *Builder) do(ctx context.Context, t task) error {
	whom := render.TermsOf(ctx).For
	err := b.inTurn(ctx, t, func(giveUp context.CancelCauseFunc) func() { return b.hurry(whom, giveUp) })
	if !errors.Is(err, errCrowded) {
		return err
	}
	if err := b.long.Acquire(ctx, whom); err != nil {
		return fmt.Errorf("wait for others that take long to be rendered: %w", err)
	}
	defer b.long.Release(whom)
	return b.inTurn(ctx, t, func(context.CancelCauseFunc) func() { return func() {} })
}

// inTurn waits for its turn and renders. hurry may give that up, until what it returns is called.
func (b *Builder) inTurn(ctx context.Context, t task, hurry func(context.CancelCauseFunc) func()) error {
	whom := render.TermsOf(ctx).For
	if err := b.turns.Acquire(ctx, whom); err != nil {
		return fmt.Errorf("wait for others to be rendered: %w", err)
	}
	defer b.turns.Release(whom)
	ctx, end := context.WithTimeoutCause(ctx, t.time(), errTime)
	defer end()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	defer hurry(giveUp)()
	if p := b.take(); p != nil {
		if err := b.with(ctx, p, t); !errors.Is(err, errEnded) {
			return err
		}
	}
	p, err := start(b.memory)
	if err != nil {
		return fmt.Errorf("start a process to render in: %w", err)
	}
	return b.with(ctx, p, t)
}

// with renders with a process, and keeps it if that can render something else. The error is errEnded if
// the process had ended while it was idle, which is not the fault of the task.
func (b *Builder) with(ctx context.Context, p *process, t task) (err error) {
	keep := false
	spare := context.AfterFunc(ctx, p.kill)
	defer func() {
		if spared := spare(); spared && keep {
			b.keep(p)
			return
		}
		p.kill()
		p.wait()
		switch {
		case keep: // it was done, and ended too late to be of use
		case errors.Is(context.Cause(ctx), errTime):
			err = errTime
		case errors.Is(context.Cause(ctx), errCrowded), errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = fmt.Errorf("it takes too long: %w", context.Cause(ctx))
		case ctx.Err() != nil:
			err = fmt.Errorf("it was given up: %w", context.Cause(ctx))
		case errors.Is(err, errEnded) && (p.spoke || p.retire == nil):
			err = p.ended()
		}
	}()
	failed, err := p.perform(ctx, t)
	if err != nil {
		return err
	}
	keep = true
	if failed != nil {
		return failed
	}
	return nil
}

// hurry gives a task up when it is not quick, and as many others are not. The returned function ends
// that.
func (b *Builder) hurry(whom string, giveUp context.CancelCauseFunc) (done func()) {
	acquired := make(chan bool, 1)
	timer := time.AfterFunc(b.quick, func() {
		held := b.long.TryAcquire(whom)
		if !held {
			giveUp(errCrowded)
		}
		acquired <- held
	})
	return func() {
		if begun := !timer.Stop(); begun && <-acquired {
			b.long.Release(whom)
		}
	}
}

// take returns an idle process, or nil.
func (b *Builder) take() *process {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.idle) > 0 {
		last := len(b.idle) - 1
		p := b.idle[last]
		b.idle = b.idle[:last]
		if p.retire.Stop() {
			return p
		}
	}
	return nil
}

// keep keeps a process for the next task.
func (b *Builder) keep(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = append(b.idle, p)
	p.retire = time.AfterFunc(unused, func() {
		b.mu.Lock()
		b.idle = slices.DeleteFunc(b.idle, func(other *process) bool { return other == p })
		b.mu.Unlock()
		p.kill()
		p.wait()
	})
}
