package keyed

import (
	"maps"
	"slices"
	"sync"
)

// Map is a map that is safe for concurrent use. The zero value is empty and ready to use. What guards more
// than one map, or has to act before others see a change, needs a lock of its own.
type Map[K comparable, V any] struct {
	mu    sync.Mutex
	byKey map[K]V
}

// Get returns the value of a key, and the zero value if there is none.
func (m *Map[K, V]) Get(key K) V {
	value, _ := m.Lookup(key)
	return value
}

// Lookup returns the value of a key, and whether there is one.
func (m *Map[K, V]) Lookup(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, found := m.byKey[key]
	return value, found
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(key K, value V) {
	m.Change(key, func(V) (V, bool) { return value, true })
}

// Of returns the value of a key. If there is none, it keeps the one that build returns. build is called with
// the lock held, so it must not block.
func (m *Map[K, V]) Of(key K, build func() V) V {
	value, _ := m.Make(key, func() (V, error) { return build(), nil })
	return value
}

// Make is Of for what may fail: then it keeps nothing, and returns the error of build.
func (m *Map[K, V]) Make(key K, build func() (V, error)) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, found := m.byKey[key]
	if found {
		return value, nil
	}
	value, err := build()
	if err == nil {
		m.put(key, value)
	}
	return value, err
}

// Change replaces the value of a key, which is the zero value if there is none, by what f makes of it, or
// drops it if f returns false. It returns what it was before. f is called with the lock held, so it must not
// block.
func (m *Map[K, V]) Change(key K, f func(V) (changed V, keep bool)) (before V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before = m.byKey[key]
	if changed, keep := f(before); keep {
		m.put(key, changed)
	} else {
		delete(m.byKey, key)
	}
	return before
}

// Drop removes a key.
func (m *Map[K, V]) Drop(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}

// DropFunc removes the keys for which drop returns true. It is called with the lock held.
func (m *Map[K, V]) DropFunc(drop func(K, V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.byKey, drop)
}

// Keys returns every key, in no particular order.
func (m *Map[K, V]) Keys() []K {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.byKey))
}

// Take returns all values by key, and drops them.
func (m *Map[K, V]) Take() map[K]V { return m.Replace(nil) }

// Replace replaces all values at once by others, which the caller must not use any more. It returns those of
// before.
func (m *Map[K, V]) Replace(by map[K]V) (before map[K]V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, m.byKey = m.byKey, by
	return before
}

// All returns a copy of the map.
func (m *Map[K, V]) All() map[K]V {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[K]V, len(m.byKey))
	maps.Copy(all, m.byKey)
	return all
}

// put sets the value of a key. The caller holds the lock.
func (m *Map[K, V]) put(key K, value V) {
	if m.byKey == nil {
		m.byKey = map[K]V{}
	}
	m.byKey[key] = value
}
