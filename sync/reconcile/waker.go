package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
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
