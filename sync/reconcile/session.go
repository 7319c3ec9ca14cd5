package reconcile

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key identifies one object of a kind, as opposed to an earlier or later one of the same name.
type Key struct {
	types.NamespacedName
	UID types.UID
}

// KeyOf returns the key of an object.
func KeyOf(obj client.Object) Key { return Key{client.ObjectKeyFromObject(obj), obj.GetUID()} }

// Sessions holds what a controller remembers of its objects between passes. The zero value is empty
// and ready to use. It is safe for concurrent use. The sessions themselves need no lock: only the
// pass of an object uses its session, and there is one at a time.
type Sessions[K comparable, S any] struct {
	mu    sync.Mutex
	byKey map[K]*S
}

// Of returns the session of a key. If there is none, it keeps the one that begin returns.
func (s *Sessions[K, S]) Of(key K, begin func() *S) *S {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byKey[key]; found != nil {
		return found
	}
	if s.byKey == nil {
		s.byKey = map[K]*S{}
	}
	begun := begin()
	s.byKey[key] = begun
	return begun
}

// Get returns the session of a key; nil if there is none.
func (s *Sessions[K, S]) Get(key K) *S {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}

// Drop forgets the session of a key.
func (s *Sessions[K, S]) Drop(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, key)
}
