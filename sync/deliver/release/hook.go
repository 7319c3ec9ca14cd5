package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"waybill.dev/waybill/sync/excerpt"
)

// WatchUntilReady implements Helm's kube.Interface: Helm uses it to wait for its hooks, of which
// only Jobs and Pods have an end.
func (c *client) WatchUntilReady(list kube.ResourceList, timeout time.Duration) error {
	return c.fail(c.during("waiting for hook "+namesOf(list)+" to end", func() error { return c.awaitEnds(list, timeout) }))
}

func (c *client) awaitEnds(list kube.ResourceList, timeout time.Duration) error {
	return c.batches(list, func(info *resource.Info) error {
		ended := endOf(info.Mapping.GroupVersionKind.GroupKind())
		if ended == nil {
			return nil
		}
		err := c.watch(info, timeout, func(event watch.Event) (bool, error) {
			o, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				return false, nil
			}
			if event.Type == watch.Deleted {
				return false, errors.New("was deleted before it ended")
			}
			return ended(o)
		})
		if err == nil {
			return nil
		}
		if wait.Interrupted(err) {
			err = fmt.Errorf("did not end within %s", timeout)
		}
		return &hookError{id: idOf(info), err: err}
	})
}

// namesOf returns the names of the first objects of a list, and how many more there are.
func namesOf(list kube.ResourceList) string {
	names := make([]string, 0, len(list))
	for _, id := range idsOf(list) {
		names = append(names, id.String())
	}
	return excerpt.Names(names, maxErrors)
}

// WaitForDelete implements Helm's kube.InterfaceExt.
func (c *client) WaitForDelete(list kube.ResourceList, timeout time.Duration) error {
	return c.fail(c.during("waiting for "+namesOf(list)+" to be gone", func() error { return c.awaitGone(list, timeout) }))
}

func (c *client) awaitGone(list kube.ResourceList, timeout time.Duration) error {
	return c.batches(list, func(info *resource.Info) error {
		if c.isGone(info) {
			return nil
		}
		_, err := c.resource(info).Get(c.ctx, info.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return c.about("read", info, err)
		}
		err = c.watch(info, timeout, func(event watch.Event) (bool, error) { return event.Type == watch.Deleted, nil })
		return c.about("wait for the end of", info, err)
	})
}

// watch follows one object until done returns true or an error, the timeout expires, or the
// action's context ends. An object that does not exist counts as deleted.
func (c *client) watch(info *resource.Info, timeout time.Duration, done watchtools.ConditionFunc) error {
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	one := fields.OneTermEqualSelector(metav1.ObjectNameField, info.Name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = one
			return c.resource(info).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = one
			return c.resource(info).Watch(ctx, options)
		},
	}
	missing := func(store cache.Store) (bool, error) {
		if len(store.List()) > 0 {
			return false, nil
		}
		return done(watch.Event{Type: watch.Deleted, Object: &unstructured.Unstructured{}})
	}
	_, err := watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, missing, done)
	return err
}

// endOf returns the function that reports whether a hook of that kind has ended, or nil for a kind
// that has no end.
func endOf(kind schema.GroupKind) func(*unstructured.Unstructured) (bool, error) {
	switch kind {
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		return jobEnded
	case schema.GroupKind{Kind: "Pod"}:
		return podEnded
	default:
		return nil
	}
}

func jobEnded(o *unstructured.Unstructured) (bool, error) {
	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &job); err != nil {
		return false, fmt.Errorf("decode: %w", err)
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			return true, nil
		case batchv1.JobFailed:
			return false, fmt.Errorf("failed: %s: %s", condition.Reason, condition.Message)
		}
	}
	return false, nil
}

func podEnded(o *unstructured.Unstructured) (bool, error) {
	phase, _, err := unstructured.NestedString(o.Object, "status", "phase")
	switch {
	case err != nil:
		return false, fmt.Errorf("decode: %w", err)
	case phase == string(corev1.PodSucceeded):
		return true, nil
	case phase == string(corev1.PodFailed):
		return false, errors.New("failed")
	default:
		return false, nil
	}
}
