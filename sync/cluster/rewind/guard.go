package rewind

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Guard ends a process whose API server went back in time: everything that the process remembers is of
// a state that is no more. It is a Runnable of the manager whose cache it makes the informers of.
type Guard struct{ found chan error }

// NewGuard returns a guard of one API server.
func NewGuard() *Guard { return &Guard{found: make(chan error, 1)} }

// NewInformer makes informers that notice when the API server went back in time. It is for
// cache.Options.
func (g *Guard) NewInformer(
	from cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers,
) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(Source(cache.ToListerWatcherWithContext(from), g.tell), object, resync, indexers)
}

func (g *Guard) tell(err error) {
	select {
	case g.found <- err:
	default: // the process is ending already
	}
}

// Start returns an error once the API server went back in time, and nil when ctx ends.
func (g *Guard) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-g.found:
		return fmt.Errorf("restart to read everything again: %w", err)
	}
}

// NeedLeaderElection returns false: those that do not lead have caches as well.
func (*Guard) NeedLeaderElection() bool { return false }
