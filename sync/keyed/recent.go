package keyed

import (
	"container/list"
	"sync"
)

// Recent is a map that keeps values up to a total cost: those that were used least recently make room for others.
// The latest one stays whatever it costs. It is safe for concurrent use.
type Recent[K comparable, V any] struct {
	most int64

	mu    sync.Mutex
	cost  int64
	order *list.List // the one that was used last is the first
	byKey map[K]*list.Element
}

type recent[K comparable, V any] struct {
	key   K
	value V
	cost  int64
}

// NewRecent returns an empty map for values that cost at most so much together.
func NewRecent[K comparable, V any](most int64) *Recent[K, V] {
	return &Recent[K, V]{most: most, order: list.New(), byKey: map[K]*list.Element{}}
}

// Lookup returns the value of a key, and whether there is one. It has been used then.
func (r *Recent[K, V]) Lookup(key K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	element, found := r.byKey[key]
	if !found {
		var none V
		return none, false
	}
	r.order.MoveToFront(element)
	return element.Value.(recent[K, V]).value, true
}

// Put sets the value of a key, and what it costs.
func (r *Recent[K, V]) Put(key K, value V, cost int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if element, found := r.byKey[key]; found {
		r.drop(element)
	}
	r.byKey[key] = r.order.PushFront(recent[K, V]{key, value, cost})
	for r.cost += cost; r.cost > r.most && r.order.Len() > 1; {
		r.drop(r.order.Back())
	}
}

// Len returns how many values there are.
func (r *Recent[K, V]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order.Len()
}

// Clear drops all values.
func (r *Recent[K, V]) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order.Init()
	clear(r.byKey)
	r.cost = 0
}

// drop drops one. The caller holds the lock.
func (r *Recent[K, V]) drop(element *list.Element) {
	dropped := r.order.Remove(element).(recent[K, V])
	delete(r.byKey, dropped.key)
	r.cost -= dropped.cost
}
