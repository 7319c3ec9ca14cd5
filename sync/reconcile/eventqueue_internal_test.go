package reconcile

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// A storm of changes is told at a pace, each object once, as what it has become.
func TestEventQueue_pacesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newEventQueue()
		var told []string
		tell := func(uid int, what string) {
			q.add(topic{uid: types.UID(fmt.Sprint(uid))}, func() { told = append(told, fmt.Sprint(uid, what)) })
		}
		for uid := range eventBurst {
			tell(uid, " failed")
		}
		assert.Len(t, told, eventBurst, "a burst is told at once")
		for uid := range 2 * eventsPerSecond {
			tell(uid, " recovered")
		}
		tell(0, " failed again")
		assert.Len(t, told, eventBurst)
		<-time.After(time.Second + time.Millisecond) // the event that is due at the second is out
		assert.Len(t, told, eventBurst+eventsPerSecond)
		assert.Equal(t, []string{"0 failed again", "1 recovered"}, told[eventBurst:eventBurst+2])
		<-time.After(time.Minute)
		assert.Len(t, told, eventBurst+2*eventsPerSecond)
		tell(0, " recovered")
		assert.Equal(t, "0 recovered", told[len(told)-1], "after a rest there is a burst again")
	})
}

// What waits is bounded, and the oldest gives way.
func TestEventQueue_isBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newEventQueue()
		told := make(map[int]bool)
		for uid := range eventBurst + maxWaiting + 1 {
			q.add(topic{uid: types.UID(fmt.Sprint(uid))}, func() { told[uid] = true })
		}
		<-time.After(time.Hour)
		assert.Len(t, told, eventBurst+maxWaiting)
		assert.False(t, told[eventBurst], "the one that had waited longest")
	})
}

// What was done with an object is not superseded by how it is now.
func TestEventQueue_keepsApartWhatEventsAreAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newEventQueue()
		var told []string
		tell := func(action, what string) {
			q.add(topic{"1", action}, func() { told = append(told, what) })
		}
		for range eventBurst {
			tell("Reconcile", "ready")
		}
		tell("Correct", "corrected")
		tell("Reconcile", "failed")
		tell("Reconcile", "ready again")
		<-time.After(time.Minute)
		assert.Equal(t, []string{"corrected", "ready again"}, told[eventBurst:])
	})
}
