package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Waker enqueues requests into a controller's queue from anywhere: an informer of a user cluster,
// or a job that has ended. Requests made before the controller has started are kept.
type Waker[R comparable] struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[R]
	early []R
}

// Source returns the source to add to the watches of the controller.
func (w *Waker[R]) Source() source.TypedSource[R] {
	return source.TypedFunc[R](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[R]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		for _, request := range w.early {
			queue.Add(request)
		}
		w.early = nil
		return nil
	})
}

// Wake enqueues a request now; the queue merges it with an equal one.
func (w *Waker[R]) Wake(request R) { w.WakeAfter(request, 0) }

// urgent is the priority of requests that come first: others have 0, or less.
const urgent = 1

// WakeFirst enqueues a request now, ahead of all that were not enqueued by WakeFirst.
func (w *Waker[R]) WakeFirst(request R) {
	w.mu.Lock()
	queue, ordered := w.queue.(priorityqueue.PriorityQueue[R])
	w.mu.Unlock()
	if !ordered {
		w.Wake(request)
		return
	}
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(urgent)}, request)
}

// WakeAfter enqueues a request after a delay, once for all that are made until then.
func (w *Waker[R]) WakeAfter(request R, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.early = append(w.early, request)
		return
	}
	w.queue.AddAfter(request, delay)
}
