package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/tree"
)

// maxLists is how many lists are read at a time.
const maxLists = 32

var eventKind = corev1.SchemeGroupVersion.WithKind("Event")

// List returns the events of objects, the latest last, and why some are missing. It returns an error if
// no events could be read at all.
func List(ctx context.Context, of []tree.Member) (entries []Entry, gaps []error, err error) {
	s := newScope(of)
	err = s.list(ctx, func(m *members, event *corev1.Event) {
		if m.has(event) {
			entries = append(entries, newEntry(m.cluster.Name(), event))
		}
	}, func(gap error) { gaps = append(gaps, gap) })
	sortEntries(entries)
	return entries, gaps, err
}

// list calls visit for the events of all namespaces of the objects, and missing for each list that could
// not be read, one at a time. It returns an error if none could.
func (s scope) list(ctx context.Context, visit func(*members, *corev1.Event), missing func(error)) error {
	var (
		mu     sync.Mutex
		failed []error
		read   int
		group  errgroup.Group
	)
	group.SetLimit(maxLists)
	for _, m := range s {
		group.Go(func() error {
			found, errs := m.list(ctx)
			mu.Lock()
			defer mu.Unlock()
			read += len(found)
			failed = append(failed, errs...)
			for _, events := range found {
				for i := range events {
					visit(m, &events[i])
				}
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in failed
	if read == 0 && len(failed) > 0 {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		missing(err)
	}
	return nil
}

// list returns the events of the namespaces of the objects, a list each, and why lists are missing.
func (m *members) list(ctx context.Context) (found [][]corev1.Event, errs []error) {
	namespaces := m.namespaces()
	if len(namespaces) > manyNamespaces {
		events, err := listIn(ctx, m.cluster, "")
		if err == nil {
			return [][]corev1.Event{events}, nil
		}
		if !apierrors.IsForbidden(err) {
			return nil, []error{fmt.Errorf("list events in cluster %s: %w", m.cluster.Name(), err)}
		}
	}
	for _, namespace := range namespaces {
		events, err := listIn(ctx, m.cluster, namespace)
		if err != nil {
			errs = append(errs, fmt.Errorf("list events in namespace %s of cluster %s: %w", namespace, m.cluster.Name(), err))
			continue
		}
		found = append(found, events)
	}
	return found, errs
}

// listIn returns the events of a namespace, or of all if that is empty.
func listIn(ctx context.Context, cluster *fleet.Cluster, namespace string) ([]corev1.Event, error) {
	list, err := cluster.List(ctx, eventKind, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	events := make([]corev1.Event, len(list))
	for i := range list {
		if err := read(&list[i], &events[i]); err != nil {
			return nil, err
		}
	}
	return slices.Clip(events), nil
}

func read(from *unstructured.Unstructured, event *corev1.Event) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, event); err != nil {
		return fmt.Errorf("read event %s in %s: %w", from.GetName(), from.GetNamespace(), err)
	}
	return nil
}
