package reconcile

import (
	"time"

	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// firstAgain and lastAgain bound the delay after a pass that could not write.
	firstAgain, lastAgain = 100 * time.Millisecond, 15 * time.Second
	// againJitter is how much of a delay is added to it at random, so that not all that could not be
	// written during an outage is tried again at once.
	againJitter = 0.2
)

// NewLimiter returns the rate limiter for the queue of a controller, which delays the next pass
// after one that returned an error: almost always because the API server did not take a write. It
// doubles the delay with each failure, but only up to seconds. The default of controller-runtime is
// up to 17 minutes, and so much after an outage an object would still show the state before it.
func NewLimiter() workqueue.TypedRateLimiter[ctrl.Request] {
	return jittered{workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstAgain, lastAgain)}
}

// jittered adds to the delays of a rate limiter.
type jittered struct {
	workqueue.TypedRateLimiter[ctrl.Request]
}

// When implements workqueue.TypedRateLimiter.
func (j jittered) When(request ctrl.Request) time.Duration {
	return apiwait.Jitter(j.TypedRateLimiter.When(request), againJitter)
}
