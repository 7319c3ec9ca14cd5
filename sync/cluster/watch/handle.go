package watch

import (
	"context"
	"fmt"
	"reflect"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Handle calls handler for all objects of the kind of obj in a cache, those that are there included, until
// ctx ends. It returns at once: the registration says when handler has seen what was there, the informer
// when the cache has it.
func Handle(ctx context.Context, from cache.Informers, obj client.Object, handler toolscache.ResourceEventHandler) (cache.Informer, toolscache.ResourceEventHandlerRegistration, error) {
	informer, err := from.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, nil, fmt.Errorf("watch %s: %w", kindOf(obj), err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, nil, fmt.Errorf("watch %s: %w", kindOf(obj), err)
	}
	context.AfterFunc(ctx, func() {
		_ = informer.RemoveEventHandler(registration) // fails only where the informer has ended
	})
	return informer, registration, nil
}

func kindOf(obj client.Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.Indirect(reflect.ValueOf(obj)).Type().Name()
}

// Changes returns a handler that calls f for every object that is created, deleted, or changed in a way
// that matters.
func Changes(matters func(was, is client.Object) bool, f func(client.Object)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { f(o.(client.Object)) },
		UpdateFunc: func(was, is any) {
			if matters(was.(client.Object), is.(client.Object)) {
				f(is.(client.Object))
			}
		},
		DeleteFunc: func(o any) {
			if gone := Deleted(o); gone != nil {
				f(gone)
			}
		},
	}
}
