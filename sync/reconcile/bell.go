package reconcile

import "sync"

// Bell counts how often something was told of, per key: a pass that has seen the count knows
// whether there was anything since. It is safe for concurrent use.
type Bell[K comparable] struct {
	mu    sync.Mutex
	rings map[K]int
}

// NewBell returns a bell that has not rung.
func NewBell[K comparable]() *Bell[K] { return &Bell[K]{rings: map[K]int{}} }

// Ring counts one more.
func (b *Bell[K]) Ring(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rings[key]++
}

// Rings is the count.
func (b *Bell[K]) Rings(key K) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rings[key]
}

// Forget starts over for a key that is gone.
func (b *Bell[K]) Forget(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rings, key)
}
