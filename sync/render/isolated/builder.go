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
	// Quick is how long a build may take whatever others do. Of those that take longer, all processes
	// but one can be full: the next one is given up. Default: DefaultQuick.
	Quick time.Duration
}

// errCrowded is why a build is given up that is not quick.
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
// kustomize.Render does. In addition, a build that takes more memory than it may, or ends its process
// otherwise, is a Problem. If ctx ends first, so does the build, and the error says so.
func (b *Builder) Build(ctx context.Context, root fs.FS, dir string) ([]manifest.Object, []manifest.Problem, error) {
	if err := b.turns.Acquire(ctx, 1); err != nil {
		return nil, nil, fmt.Errorf("wait for other kustomizations to be built: %w", err)
	}
	defer b.turns.Release(1)
	p, err := b.take()
	if err != nil {
		return nil, nil, fmt.Errorf("start a process for kustomize: %w", err)
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	defer b.hurry(giveUp)()
	kill := context.AfterFunc(ctx, p.kill)
	got, err := p.build(root, dir)
	switch alive := kill(); {
	case !alive:
		p.wait()
		return nil, nil, fmt.Errorf("it takes too long: %w", context.Cause(ctx))
	case errors.Is(err, errEnded):
		problems, err := p.ended(root, dir, b.memory)
		return nil, problems, err
	case err != nil:
		p.kill()
		p.wait()
		return nil, nil, err
	}
	b.keep(p)
	if err := got.Fault.err(); err != nil {
		return nil, nil, cmp.Or(p.failure, err)
	}
	objects, err := decode(got.Objects)
	return objects, got.Problems, err
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

// take returns an idle process, or a new one.
func (b *Builder) take() (*process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.idle) > 0 {
		last := len(b.idle) - 1
		p := b.idle[last]
		b.idle = b.idle[:last]
		if p.retire.Stop() {
			return p, nil
		}
	}
	return start(b.memory)
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
