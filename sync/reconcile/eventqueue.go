package reconcile

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// eventBurst events are sent at once, and eventsPerSecond after that: status writes matter
	// more, and events must not delay them.
	eventBurst      = 50
	eventsPerSecond = 10
	// maxWaiting is how many events may wait. Beyond that, the oldest are dropped.
	maxWaiting = 1000
)

// topic is the subject of an event: an object and the action on it.
type topic struct {
	uid    types.UID
	action string
}

// eventQueue rate-limits the events of one controller. Only the latest event of a topic waits,
// because it supersedes earlier ones.
type eventQueue struct {
	limiter *rate.Limiter

	mu      sync.Mutex
	waiting map[topic]func()
	// order holds the keys of waiting, oldest first.
	order []topic
}

func newEventQueue() *eventQueue {
	return &eventQueue{limiter: rate.NewLimiter(eventsPerSecond, eventBurst), waiting: make(map[topic]func())}
}

// add sends an event of a topic, now or as soon as the rate limit allows.
func (q *eventQueue) add(about topic, send func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 && q.limiter.Allow() {
		send()
		return
	}
	_, waits := q.waiting[about]
	q.waiting[about] = send
	if waits {
		return
	}
	if q.order = append(q.order, about); len(q.order) == 1 {
		q.arm()
	}
	if len(q.order) > maxWaiting {
		delete(q.waiting, q.order[0])
		q.order = q.order[1:]
	}
}

// arm schedules the next event. The caller holds the lock.
func (q *eventQueue) arm() { time.AfterFunc(q.limiter.Reserve().Delay(), q.next) }

func (q *eventQueue) next() {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.order[0]
	q.waiting[first]()
	delete(q.waiting, first)
	if q.order = q.order[1:]; len(q.order) > 0 {
		q.arm()
	}
}
