package isolated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"waybill.dev/waybill/sync/manifest"
)

// Defaults of Options.
const (
	DefaultMemory    = 384 << 20
	DefaultProcesses = 2
	DefaultQuick     = 5 * time.Second
)

// unused is how long a process is kept that nobody needs.
const unused = time.Minute

// Options bound a Builder. Zero fields take the defaults.
type Options struct {
	// Memory is how many bytes a build may take, of which some 40 MiB are those of the program.
	// Default: DefaultMemory.
	Memory int64
	// Processes is how many builds run at a time; others wait. Default: DefaultProcesses.
	Processes int
	// Quick is how long a build may take whatever others do. Those that take longer may fill all
	// processes but one, if there are two or more; others begin anew when one of them has ended.
	// Default: DefaultQuick.
	Quick time.Duration
}

// errCrowded is why a build is given up that is not quick: others are not, either.
var errCrowded = errors.New("others that take long are being built")

// Builder builds kustomizations in processes of its own.
type Builder struct {
	memory int64
	quick  time.Duration
	// turns are those of all builds, and long of these those that are not quick.
	turns, long *semaphore.Weighted

	mu sync.Mutex
	// idle processes; the last one was used last.
	idle []*process
}

// NewBuilder returns a Builder. The program must call Main before anything else.
func NewBuilder(o Options) *Builder {
	processes := int64(cmp.Or(o.Processes, DefaultProcesses))
	return &Builder{
		memory: cmp.Or(o.Memory, DefaultMemory),
		quick:  cmp.Or(o.Quick, DefaultQuick),
		turns:  semaphore.NewWeighted(processes),
		long:   semaphore.NewWeighted(max(1, processes-1)),
	}
}

// Build builds the kustomization in a directory of the repository whose root is given, as
// kustomize.Render does. In addition, a build that takes more memory than it may, or fills its stack,
// is a Problem. If ctx ends first, so does the build, and the error says so.
func (b *Builder) Build(ctx context.Context, root fs.FS, dir string) ([]manifest.Object, []manifest.Problem, error) {
	objects, problems, err := b.inTurn(ctx, root, dir, b.hurry)
	if !errors.Is(err, errCrowded) {
		return objects, problems, err
	}
	if err := b.long.Acquire(ctx, 1); err != nil {
		return nil, nil, fmt.Errorf("wait for other kustomizations that take long to be built: %w", err)
	}
	defer b.long.Release(1)
	return b.inTurn(ctx, root, dir, func(context.CancelCauseFunc) func() { return func() {} })
}

// inTurn waits for its turn and builds. hurry may give the build up, until what it returns is called.
func (b *Builder) inTurn(ctx context.Context, root fs.FS, dir string, hurry func(context.CancelCauseFunc) func()) (
	[]manifest.Object, []manifest.Problem, error,
) {
	if err := b.turns.Acquire(ctx, 1); err != nil {
		return nil, nil, fmt.Errorf("wait for other kustomizations to be built: %w", err)
	}
	defer b.turns.Release(1)
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	defer hurry(giveUp)()
	if p := b.take(); p != nil {
		objects, problems, err := b.with(ctx, p, root, dir)
		if !errors.Is(err, errEnded) {
			return objects, problems, err
		}
	}
	p, err := start(b.memory)
	if err != nil {
		return nil, nil, fmt.Errorf("start a process for kustomize: %w", err)
	}
	return b.with(ctx, p, root, dir)
}

// with builds with a process, and keeps it if that can build something else. The error is errEnded if
// the process had ended while it was idle, which is not the fault of the build.
func (b *Builder) with(ctx context.Context, p *process, root fs.FS, dir string) (
	objects []manifest.Object, problems []manifest.Problem, err error,
) {
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
		case errors.Is(context.Cause(ctx), errCrowded), errors.Is(ctx.Err(), context.DeadlineExceeded):
			objects, problems, err = nil, nil, fmt.Errorf("it takes too long: %w", context.Cause(ctx))
		case ctx.Err() != nil:
			objects, problems, err = nil, nil, fmt.Errorf("it was given up: %w", context.Cause(ctx))
		case errors.Is(err, errEnded) && (p.spoke || p.retire == nil):
			problems, err = p.ended(root, dir, b.memory)
		}
	}()
	objects, problems, fault, err := p.build(root, dir)
	if err != nil {
		return nil, nil, err
	}
	keep = true
	if fault != nil {
		return nil, nil, cmp.Or(p.failure, error(fault))
	}
	return objects, problems, nil
}

// hurry gives a build up when it is not quick, and as many others are not. The returned function ends
// that.
func (b *Builder) hurry(giveUp context.CancelCauseFunc) (done func()) {
	var mu sync.Mutex
	held, ended := false, false
	timer := time.AfterFunc(b.quick, func() {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		if held = b.long.TryAcquire(1); !held {
			giveUp(errCrowded)
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		if ended = true; held {
			b.long.Release(1)
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

// keep keeps a process for the next build.
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
