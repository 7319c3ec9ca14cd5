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
	// maxWaiting is how many objects may have an event that waits. The oldest give way.
	maxWaiting = 1000
)

// herald paces the events of one controller. Of an object only the last event waits: what it
// has become in the meantime supersedes what it was.
type herald struct {
	limiter *rate.Limiter

	mu      sync.Mutex
	waiting map[types.UID]func()
	// order has the keys of waiting, the oldest first.
	order []types.UID
}

func newHerald() *herald {
	return &herald{limiter: rate.NewLimiter(eventsPerSecond, eventBurst), waiting: make(map[types.UID]func())}
}

// tell sends an event of an object, now or when it is its turn.
func (h *herald) tell(uid types.UID, send func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.order) == 0 && h.limiter.Allow() {
		send()
		return
	}
	if _, waits := h.waiting[uid]; !waits {
		h.order = append(h.order, uid)
	}
	h.waiting[uid] = send
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
	uid := h.order[0]
	h.waiting[uid]()
	delete(h.waiting, uid)
	if h.order = h.order[1:]; len(h.order) > 0 {
		h.arm()
	}
}
