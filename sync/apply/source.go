package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// metadataSource lists and watches metadata alone.
func metadataSource(client metadata.ResourceInterface, labels, fields string) *cache.ListWatch {
	return selecting(labels, fields,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		client.Watch)
}

// objectSource lists and watches whole objects.
func objectSource(client dynamic.ResourceInterface, labels string) *cache.ListWatch {
	return selecting(labels, "",
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		client.Watch)
}

func selecting(labels, fields string, list cache.ListWithContextFunc, watchFunc cache.WatchFuncWithContext) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = labels, fields
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = labels, fields
			w, err := watchFunc(ctx, o)
			// A reflector would wait by itself after these errors. A feed waits too, but
			// it can be woken up.
			if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
				err = lostError{err}
			}
			return w, err
		},
	}
}

// lostError hides an error from a reflector.
type lostError struct{ cause error }

func (e lostError) Error() string { return e.cause.Error() }

// feedStore is a feed as the store of a reflector.
type feedStore struct{ *feed }

var _ cache.TransformingStore = feedStore{}

// Transformer reduces objects while a list is still on its way, so that the list
// is never in memory as a whole.
func (s feedStore) Transformer() cache.TransformFunc {
	return func(in any) (any, error) {
		if seen := s.reduce(in); seen != nil {
			return seen, nil
		}
		return in, nil
	}
}

func (s feedStore) reduce(in any) *observed {
	switch object := in.(type) {
	case *observed:
		return object
	case metav1.Object:
		seen := observe(object, s.full)
		if s.full {
			seen.live.reported = reported(object, seen.live.owner, s.statuses)
		}
		return seen
	default:
		return nil
	}
}

func (s feedStore) Add(in any) error { return s.Update(in) }

func (s feedStore) Update(in any) error {
	if seen := s.reduce(in); seen != nil {
		s.sink.put(s.feed, seen)
	}
	return nil
}

func (s feedStore) Delete(in any) error {
	if seen := s.reduce(in); seen != nil {
		s.sink.drop(s.feed, seen)
	}
	return nil
}

func (s feedStore) Replace(in []any, version string) error {
	all := make([]*observed, 0, len(in))
	for _, object := range in {
		if seen := s.reduce(object); seen != nil {
			all = append(all, seen)
		}
	}
	s.sink.replace(s.feed, all, version)
	s.succeeded()
	return nil
}

func (s feedStore) Resync() error { return nil }
