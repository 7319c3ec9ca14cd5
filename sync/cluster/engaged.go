package cluster

import (
	"context"

	"waybill.dev/waybill/sync/keyed"
)

// Engaged holds what a controller keeps of each cluster for as long as the cluster is engaged: a
// value under a key, such as the name of the cluster, that is gone once its context has ended. The
// zero value is empty and ready to use. It is safe for concurrent use.
type Engaged[K comparable, V any] struct{ byKey keyed.Map[K, *engaged[V]] }

type engaged[V any] struct {
	value V
	ended func() bool
}

// Put keeps a value until ctx ends, or until another is put under the same key. If ctx has ended, it
// does nothing: what is under the key may be of a later engagement.
func (e *Engaged[K, V]) Put(ctx context.Context, key K, value V) {
	e.replace(ctx, key, func(*engaged[V]) *engaged[V] { return begin(ctx, value) })
}

// Of returns the value of a key. If there is none, it keeps what build returns until ctx ends. build
// is called with the lock held, so it must not block.
func (e *Engaged[K, V]) Of(ctx context.Context, key K, build func() V) V {
	return e.replace(ctx, key, func(found *engaged[V]) *engaged[V] {
		if found != nil && !found.ended() {
			return found
		}
		return begin(ctx, build())
	}).value
}

// Get returns the value of a key, and the zero value if there is none.
func (e *Engaged[K, V]) Get(key K) V {
	if found := e.byKey.Get(key); found != nil && !found.ended() {
		return found.value
	}
	var none V
	return none
}

// All returns every value, in no particular order.
func (e *Engaged[K, V]) All() []V {
	var all []V
	for _, found := range e.byKey.All() {
		if !found.ended() {
			all = append(all, found.value)
		}
	}
	return all
}

func begin[V any](ctx context.Context, value V) *engaged[V] {
	return &engaged[V]{value: value, ended: func() bool { return ctx.Err() != nil }}
}

// replace keeps what f makes of what is under a key, until its context, which is ctx if it is new, ends.
func (e *Engaged[K, V]) replace(ctx context.Context, key K, f func(*engaged[V]) *engaged[V]) *engaged[V] {
	var made *engaged[V]
	before := e.byKey.Change(key, func(found *engaged[V]) (*engaged[V], bool) {
		if made = f(found); made.ended() {
			return found, found != nil
		}
		return made, true
	})
	if made != before && !made.ended() {
		context.AfterFunc(ctx, func() { e.drop(key, made) })
	}
	return made
}

// drop frees a value whose context has ended, unless another has taken its place.
func (e *Engaged[K, V]) drop(key K, ended *engaged[V]) {
	e.byKey.Change(key, func(found *engaged[V]) (*engaged[V], bool) { return found, found != nil && found != ended })
}
