package cluster

import (
	"context"
	"sync"
)

// Engaged holds what a controller keeps of each cluster for as long as the cluster is engaged: a
// value under a key, such as the name of the cluster, that is gone once its context has ended. The
// zero value is empty and ready to use. It is safe for concurrent use.
type Engaged[K comparable, V any] struct {
	mu    sync.Mutex
	byKey map[K]*engaged[V]
}

type engaged[V any] struct {
	value V
	ended func() bool
}

// Put keeps a value until ctx ends, or until another is put under the same key. If ctx has ended, it
// does nothing: what is under the key may be of a later engagement.
func (e *Engaged[K, V]) Put(ctx context.Context, key K, value V) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.put(ctx, key, value)
}

// Of returns the value of a key. If there is none, it keeps what build returns until ctx ends. build
// is called with the lock held, so it must not block.
func (e *Engaged[K, V]) Of(ctx context.Context, key K, build func() V) V {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found := e.byKey[key]; found != nil && !found.ended() {
		return found.value
	}
	built := build()
	e.put(ctx, key, built)
	return built
}

// Get returns the value of a key, and the zero value if there is none.
func (e *Engaged[K, V]) Get(key K) V {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found := e.byKey[key]; found != nil && !found.ended() {
		return found.value
	}
	var none V
	return none
}

// All returns every value, in no particular order.
func (e *Engaged[K, V]) All() []V {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]V, 0, len(e.byKey))
	for _, found := range e.byKey {
		if !found.ended() {
			all = append(all, found.value)
		}
	}
	return all
}

// put keeps a value unless ctx has ended. The caller holds the lock.
func (e *Engaged[K, V]) put(ctx context.Context, key K, value V) {
	if ctx.Err() != nil {
		return
	}
	if e.byKey == nil {
		e.byKey = map[K]*engaged[V]{}
	}
	added := &engaged[V]{value: value, ended: func() bool { return ctx.Err() != nil }}
	e.byKey[key] = added
	context.AfterFunc(ctx, func() { e.drop(key, added) })
}

// drop frees a value whose context has ended, unless another has taken its place.
func (e *Engaged[K, V]) drop(key K, ended *engaged[V]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byKey[key] == ended {
		delete(e.byKey, key)
	}
}
