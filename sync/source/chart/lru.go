package chart

import (
	"container/list"
	"sync"
)

// lru keeps values up to a total cost and evicts the least recently used first. The latest one
// stays whatever it costs.
type lru[K comparable, V any] struct {
	mu      sync.Mutex
	room    int64
	order   *list.List
	entries map[K]*list.Element
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
	cost  int64
}

func newLRU[K comparable, V any](room int64) *lru[K, V] {
	return &lru[K, V]{room: room, order: list.New(), entries: map[K]*list.Element{}}
}

func (l *lru[K, V]) get(key K) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	element, ok := l.entries[key]
	if !ok {
		var none V
		return none, false
	}
	l.order.MoveToFront(element)
	return element.Value.(lruEntry[K, V]).value, true
}

func (l *lru[K, V]) add(key K, value V, cost int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if element, ok := l.entries[key]; ok {
		l.remove(element)
	}
	l.entries[key] = l.order.PushFront(lruEntry[K, V]{key, value, cost})
	l.room -= cost
	for l.room < 0 && l.order.Len() > 1 {
		l.remove(l.order.Back())
	}
}

func (l *lru[K, V]) remove(element *list.Element) {
	entry := l.order.Remove(element).(lruEntry[K, V])
	delete(l.entries, entry.key)
	l.room += entry.cost
}
