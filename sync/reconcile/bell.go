package reconcile

import (
	"context"
	"time"

	"waybill.dev/waybill/sync/keyed"
)

// Bell counts notifications per key, so that a pass that remembers the count knows whether there
// were any since. It is safe for concurrent use.
type Bell[K comparable] struct{ byKey keyed.Map[K, rings] }

// rings are the notifications for one key.
type rings struct {
	count int
	// next is closed by the next one; nil if there are no waiters.
	next chan struct{}
}

// NewBell returns a bell whose counts are all zero.
func NewBell[K comparable]() *Bell[K] { return &Bell[K]{} }

// Ring counts one more notification for key.
func (b *Bell[K]) Ring(key K) {
	before := b.byKey.Change(key, func(r rings) (rings, bool) { return rings{count: r.count + 1}, true })
	if before.next != nil {
		close(before.next)
	}
}

// Rings returns the count for key.
func (b *Bell[K]) Rings(key K) int { return b.byKey.Get(key).count }

// Until returns when done reports true, which is asked at once and after each notification for key; at
// the latest after limit, or when ctx ends.
func (b *Bell[K]) Until(ctx context.Context, key K, limit time.Duration, done func() bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for next := b.following(key); !done(); next = b.following(key) {
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// following returns a channel that the next notification for key closes.
func (b *Bell[K]) following(key K) (next <-chan struct{}) {
	b.byKey.Change(key, func(r rings) (rings, bool) {
		if r.next == nil {
			r.next = make(chan struct{})
		}
		next = r.next
		return r, true
	})
	return next
}

// Forget drops the count of a key that is gone.
func (b *Bell[K]) Forget(key K) { b.byKey.Drop(key) }
