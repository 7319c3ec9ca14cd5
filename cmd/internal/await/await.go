// Package await waits until an object says what a command wants to know.
package await

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/internal/fleet"
	syncwatch "waybill.dev/waybill/sync/cluster/watch"
)

// errDeleted ends a wait for an object that is gone.
var errDeleted = errors.New("was deleted meanwhile")

// Until watches an object, as an API server has returned it, until done says of a version that it is the last. done gets each
// version from that on, in their order; some may be left out only where the API server no longer has them. It returns the version
// that was seen last, also with an error; nil if none was.
func Until(ctx context.Context, target *fleet.Cluster, object *unstructured.Unstructured, done func(*unstructured.Unstructured) bool) (*unstructured.Unstructured, error) {
	if done(object) {
		return object, nil
	}
	last, event, err := until(ctx, target, object, since, done)
	if err == nil {
		return event.Object.(*unstructured.Unstructured), nil
	}
	if last == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return look(ctx, target, object, err)
	}
	return last, err
}

// errGone ends the wait for the end of an object that has gone before it was watched.
var errGone = errors.New("is gone")

// Gone watches an object until it is gone, or another one has its name. see gets each version.
func Gone(ctx context.Context, target *fleet.Cluster, object *unstructured.Unstructured, see func(*unstructured.Unstructured)) error {
	missing := func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return false, errGone
		}
		return false, nil
	}
	latest := func(ctx context.Context, source cache.ListerWatcher, _ string, condition watchtools.ConditionFunc) (*watch.Event, error) {
		return watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, missing, condition)
	}
	_, _, err := until(ctx, target, object, latest, func(live *unstructured.Unstructured) bool {
		see(live)
		return live.GetUID() != object.GetUID()
	})
	if errors.Is(err, errDeleted) || errors.Is(err, errGone) {
		return nil
	}
	return err
}

// waiter waits for a condition of what changes after a version.
type waiter func(ctx context.Context, source cache.ListerWatcher, version string, condition watchtools.ConditionFunc) (*watch.Event, error)

// since waits with every change after the version. With the latest ones if the API server no longer has all of them, or
// refuses the watch: it may be granted before the time is over.
func since(ctx context.Context, source cache.ListerWatcher, version string, condition watchtools.ConditionFunc) (*watch.Event, error) {
	event, err := watchtools.Until(ctx, version, source, condition)
	var refused apierrors.APIStatus
	if ctx.Err() == nil && (errors.As(err, &refused) || errors.Is(err, watchtools.ErrWatchClosed)) {
		return watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, nil, condition)
	}
	return event, err
}

// until watches an object until done says so. It returns the version that was seen last, and the event
// that ended the wait.
func until(ctx context.Context, target *fleet.Cluster, object *unstructured.Unstructured, wait waiter,
	done func(*unstructured.Unstructured) bool) (last *unstructured.Unstructured, event *watch.Event, err error) {
	source, err := watchOne(target, object)
	if err != nil {
		return nil, nil, err
	}
	event, err = wait(ctx, source, object.GetResourceVersion(), func(e watch.Event) (bool, error) {
		switch e.Type {
		case watch.Deleted:
			return false, errDeleted
		case watch.Error:
			return false, apierrors.FromObject(e.Object)
		}
		live, ok := e.Object.(*unstructured.Unstructured)
		if !ok || syncwatch.Older(live.GetResourceVersion(), object.GetResourceVersion()) {
			return false, nil // what was before our request, from a cache of the API server
		}
		last = live
		return done(live), nil
	})
	return last, event, err
}

// lastLook is how long it may take to read an object that no watch has shown in time.
const lastLook = 5 * time.Second

// look reads an object once, after the time for watching it is over. It returns the error with which
// that ended, or its own.
func look(ctx context.Context, target *fleet.Cluster, object *unstructured.Unstructured, ended error) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	c, err := target.Client()
	if err != nil {
		return nil, err
	}
	live := object.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return nil, fmt.Errorf("look at it: %w", target.Explain(err))
	}
	return live, ended
}

// watchOne lists and watches a single object.
func watchOne(target *fleet.Cluster, object *unstructured.Unstructured) (cache.ListerWatcher, error) {
	config, httpClient, err := target.REST()
	if err != nil {
		return nil, err
	}
	unlimited := *httpClient
	unlimited.Timeout = 0 // a watch has no time limit
	all, err := dynamic.NewForConfigAndClient(config, &unlimited)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	mapper, err := target.Mapper()
	if err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", object.GetKind(), err)
	}
	var resource dynamic.ResourceInterface = all.Resource(mapping.Resource)
	if ns := object.GetNamespace(); ns != "" {
		resource = all.Resource(mapping.Resource).Namespace(ns)
	}
	only := fields.OneTermEqualSelector("metadata.name", object.GetName()).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return resource.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return resource.Watch(ctx, o)
		},
	}, nil
}
