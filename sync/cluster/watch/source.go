package watch

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// Metadata lists and watches metadata only.
func Metadata(client metadata.ResourceInterface, labels, selector string) *cache.ListWatch {
	return selecting(labels, selector,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		client.Watch)
}

// Objects lists and watches whole objects.
func Objects(client dynamic.ResourceInterface, labels string) *cache.ListWatch {
	return selecting(labels, "",
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		client.Watch)
}

// Named lists and watches one whole object.
func Named(client dynamic.ResourceInterface, name string) *cache.ListWatch {
	return selecting("", fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		client.Watch)
}

func selecting(labels, selector string, list cache.ListWithContextFunc, watchFunc cache.WatchFuncWithContext) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = labels, selector
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.LabelSelector, o.FieldSelector = labels, selector
			w, err := watchFunc(ctx, o)
			// A reflector would back off by itself after these errors. So does a feed, but it can
			// be woken up.
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
