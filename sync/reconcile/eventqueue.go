package reconcile

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// eventBurst events are sent at once, and eventsPerSecond after that: statuses are what
	// counts, and events must not take the API server's time from them.
	eventBurst      = 50
	eventsPerSecond = 10
	// maxWaiting is how many events may wait. The oldest give way.
	maxWaiting = 1000
)

// topic is what an event is about: an object, and what was done with it.
type topic struct {
	uid    types.UID
	action string
}

// eventQueue paces the events of one controller. Of a topic only the last event waits: what an
// object has become in the meantime supersedes what it was.
type eventQueue struct {
	limiter *rate.Limiter

	mu      sync.Mutex
	waiting map[topic]func()
	// order has the keys of waiting, the oldest first.
	order []topic
}

func newEventQueue() *eventQueue {
	return &eventQueue{limiter: rate.NewLimiter(eventsPerSecond, eventBurst), waiting: make(map[topic]func())}
}

// add sends an event of a topic, now or when it is its turn.
func (q *eventQueue) add(about topic, send func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 && q.limiter.Allow() {
		send()
		return
	}
	if _, waits := q.waiting[about]; !waits {
		q.order = append(q.order, about)
	}
	q.waiting[about] = send
	if len(q.order) > maxWaiting {
		delete(q.waiting, q.order[0])
		q.order = q.order[1:]
	}
	if len(q.order) == 1 {
		q.arm()
	}
}

// arm has the next event be sent at its time. The caller holds the lock.
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
