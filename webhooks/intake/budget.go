package intake

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// maxWaiting is how many requests may wait for one Budget. API servers send far fewer: by default,
// one handles some 600 requests at a time, of all kinds.
const maxWaiting = 1000

// ErrBusy means that a Budget had no room in time.
var ErrBusy = errors.New("the webhook is busy with other requests, try again")

// Budget bounds how much memory requests take together. They are served in order of arrival.
type Budget struct {
	bytes   int64
	room    *semaphore.Weighted
	waiting atomic.Int64
}

// NewBudget returns a Budget of that many bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{bytes: bytes, room: semaphore.NewWeighted(bytes)}
}

// TryAcquire is Acquire for those who do not wait.
func (b *Budget) TryAcquire(bytes int64) (release func(), ok bool) {
	bytes = min(bytes, b.bytes)
	return func() { b.room.Release(bytes) }, b.room.TryAcquire(bytes)
}

// Acquire waits for room, and returns the function that gives it back. What asks for more than the
// whole Budget gets the whole Budget. The error is ErrBusy if there was no room until ctx ended, or
// if too many wait already.
func (b *Budget) Acquire(ctx context.Context, bytes int64) (release func(), err error) {
	if release, ok := b.TryAcquire(bytes); ok {
		return release, nil
	}
	defer b.waiting.Add(-1)
	if b.waiting.Add(1) > maxWaiting {
		return nil, ErrBusy
	}
	bytes = min(bytes, b.bytes)
	if err := b.room.Acquire(ctx, bytes); err != nil {
		return nil, ErrBusy
	}
	return func() { b.room.Release(bytes) }, nil
}
