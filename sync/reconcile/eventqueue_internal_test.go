package reconcile

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// audience remembers what it received. Its queue sends from goroutines of its own.
type audience struct {
	queue *eventQueue

	mu    sync.Mutex
	heard []string
}

func newAudience() *audience { return &audience{queue: newEventQueue()} }

func (a *audience) tell(uid int, action, what string) {
	a.queue.add(topic{types.UID(fmt.Sprint(uid)), action}, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.heard = append(a.heard, fmt.Sprint(uid, " ", what))
	})
}

// after passes time, and returns what was heard until then.
func (a *audience) after(d time.Duration) []string {
	<-time.After(d)
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.heard)
}

// A storm of changes is reported at a pace, each object once, as what it has become.
func TestEventQueue_pacesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAudience()
		for uid := range eventBurst {
			a.tell(uid, "Reconcile", "failed")
		}
		assert.Len(t, a.after(0), eventBurst, "a burst is told at once")
		for uid := range 2 * eventsPerSecond {
			a.tell(uid, "Reconcile", "recovered")
		}
		a.tell(0, "Reconcile", "failed again")
		assert.Len(t, a.after(0), eventBurst)
		heard := a.after(time.Second)
		assert.Len(t, heard, eventBurst+eventsPerSecond)
		assert.Equal(t, []string{"0 failed again", "1 recovered"}, heard[eventBurst:eventBurst+2])
		assert.Len(t, a.after(time.Minute), eventBurst+2*eventsPerSecond)
		a.tell(0, "Reconcile", "recovered")
		heard = a.after(0)
		assert.Equal(t, "0 recovered", heard[len(heard)-1], "after a rest there is a burst again")
	})
}

// The only event that waits is replaced as any other, and sent once.
func TestEventQueue_replacesTheOnlyOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAudience()
		for uid := range eventBurst {
			a.tell(uid, "Reconcile", "failed")
		}
		for _, what := range []string{"recovered", "failed again", "recovered again"} {
			a.tell(0, "Reconcile", what)
		}
		heard := a.after(time.Minute)
		assert.Equal(t, []string{"0 recovered again"}, heard[eventBurst:])
	})
}

// What waits is bounded, and the oldest gives way.
func TestEventQueue_isBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAudience()
		for uid := range eventBurst + maxWaiting + 1 {
			a.tell(uid, "Reconcile", "ready")
		}
		heard := a.after(time.Hour)
		assert.Len(t, heard, eventBurst+maxWaiting)
		assert.NotContains(t, heard, fmt.Sprint(eventBurst, " ready"), "the one that had waited longest")
	})
}

// What was done with an object is not superseded by how it is now.
func TestEventQueue_keepsApartWhatEventsAreAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAudience()
		for range eventBurst {
			a.tell(1, "Reconcile", "ready")
		}
		a.tell(1, "Correct", "corrected")
		a.tell(1, "Reconcile", "failed")
		a.tell(1, "Reconcile", "ready again")
		assert.Equal(t, []string{"1 corrected", "1 ready again"}, a.after(time.Minute)[eventBurst:])
	})
}
