package watch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// store adapts a feed to the store of a reflector.
type store[S Seen] struct{ *Feed[S] }

// Transformer reduces objects while a list is still being received, so that the list is never in
// memory as a whole.
func (s store[S]) Transformer() cache.TransformFunc {
	return func(in any) (any, error) {
		if seen, ok := s.seen(in); ok {
			return seen, nil
		}
		return in, nil
	}
}

func (s store[S]) seen(in any) (S, bool) {
	switch object := in.(type) {
	case S:
		return object, true
	case metav1.Object:
		return s.reduce(object), true
	default:
		var none S
		return none, false
	}
}

func (s store[S]) Add(in any) error { return s.Update(in) }

func (s store[S]) Update(in any) error {
	if seen, ok := s.seen(in); ok {
		s.sink.Put(seen)
	}
	return nil
}

func (s store[S]) Delete(in any) error {
	if seen, ok := s.seen(in); ok {
		s.sink.Drop(seen)
	}
	return nil
}

func (s store[S]) Replace(in []any, version string) error {
	all := make([]S, 0, len(in))
	for _, object := range in {
		if seen, ok := s.seen(object); ok {
			all = append(all, seen)
		}
	}
	s.sink.Replace(all, version)
	s.succeeded()
	return nil
}

func (s store[S]) Resync() error { return nil }
