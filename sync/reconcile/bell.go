package reconcile

import (
	"context"
	"sync"
	"time"
)

// Bell counts notifications per key, so that a pass that remembers the count knows whether there
// were any since. It is safe for concurrent use.
type Bell[K comparable] struct {
	mu    sync.Mutex
	rings map[K]int
	// next has a channel for each key that somebody waits for, which the next notification closes.
	next map[K]chan struct{}
}

// NewBell returns a bell whose counts are all zero.
func NewBell[K comparable]() *Bell[K] {
	return &Bell[K]{rings: map[K]int{}, next: map[K]chan struct{}{}}
}

// Ring counts one more notification for key.
func (b *Bell[K]) Ring(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rings[key]++
	if next := b.next[key]; next != nil {
		close(next)
		delete(b.next, key)
	}
}

// Rings returns the count for key.
func (b *Bell[K]) Rings(key K) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rings[key]
}

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
func (b *Bell[K]) following(key K) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next[key] == nil {
		b.next[key] = make(chan struct{})
	}
	return b.next[key]
}

// Forget drops the count of a key that is gone.
func (b *Bell[K]) Forget(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rings, key)
	delete(b.next, key)
}
