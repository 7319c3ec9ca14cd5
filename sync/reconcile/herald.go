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

// herald paces the events of one controller. Of a topic only the last event waits: what an object
// has become in the meantime supersedes what it was.
type herald struct {
	limiter *rate.Limiter

	mu      sync.Mutex
	waiting map[topic]func()
	// order has the keys of waiting, the oldest first.
	order []topic
}

func newHerald() *herald {
	return &herald{limiter: rate.NewLimiter(eventsPerSecond, eventBurst), waiting: make(map[topic]func())}
}

// tell sends an event of a topic, now or when it is its turn.
func (h *herald) tell(about topic, send func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.order) == 0 && h.limiter.Allow() {
		send()
		return
	}
	if _, waits := h.waiting[about]; !waits {
		h.order = append(h.order, about)
	}
	h.waiting[about] = send
	if len(h.order) > maxWaiting {
		delete(h.waiting, h.order[0])
		h.order = h.order[1:]
	}
	if len(h.order) == 1 {
		h.arm()
	}
}

// arm has the next event be sent at its time. The caller holds the lock.
func (h *herald) arm() { time.AfterFunc(h.limiter.Reserve().Delay(), h.next) }

func (h *herald) next() {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.order[0]
	h.waiting[first]()
	delete(h.waiting, first)
	if h.order = h.order[1:]; len(h.order) > 0 {
		h.arm()
	}
}
