package reconcile

import "sync"

// Bell counts notifications per key, so that a pass that remembers the count knows whether there
// were any since. It is safe for concurrent use.
type Bell[K comparable] struct {
	mu    sync.Mutex
	rings map[K]int
}

// NewBell returns a bell whose counts are all zero.
func NewBell[K comparable]() *Bell[K] { return &Bell[K]{rings: map[K]int{}} }

// Ring counts one more notification for key.
func (b *Bell[K]) Ring(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rings[key]++
}

// Rings returns the count for key.
func (b *Bell[K]) Rings(key K) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rings[key]
}

// Forget drops the count of a key that is gone.
func (b *Bell[K]) Forget(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rings, key)
}
