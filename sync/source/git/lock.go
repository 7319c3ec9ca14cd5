package git

import "context"

// lock is a mutex; waiting for it ends with a context.
type lock chan struct{}

func newLock() lock {
	return make(lock, 1)
}

func (l lock) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l lock) release() {
	<-l
}
