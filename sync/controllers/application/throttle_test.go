package application

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// A97: the longer an Application keeps changing, and the larger its status is, the less often it is
// written; what happens to one that rests is looked at in time.
func TestThrottle_boundsWhatIsWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		size, most int
		reason     string
	}{
		"small":   {2 << 10, 5 + 30, "every two seconds, after a few at once"},
		"medium":  {100 << 10, 2 + 30, "every two seconds"},
		"largest": {maxStatusBytes, 15, "every four seconds; but at once after a rest"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var wakes atomic.Int64
				app := types.NamespacedName{Namespace: "blog", Name: "shop"}
				var throttled *throttle
				throttled = newThrottle(func(key types.NamespacedName) {
					assert.Equal(t, app, key)
					wakes.Add(1)
					throttled.wrote(key, tc.size)
				})
				for range 60 * 100 { // a minute of a change every 10 ms
					throttled.soon(app)
					<-time.After(10 * time.Millisecond)
				}
				assert.LessOrEqual(t, int(wakes.Load()), tc.most+1, tc.reason)
				assert.GreaterOrEqual(t, int(wakes.Load()), tc.most*4/5, tc.reason)

				<-time.After(time.Minute)
				before := wakes.Load()
				throttled.soon(app)
				<-time.After(gather)
				synctest.Wait()
				assert.Equal(t, before+1, wakes.Load(), "one change after a quiet minute is not held back")
			})
		})
	}
}

// A change that comes alone is not held back, whatever was before.
func TestThrottle_restsLongerOnlyWhileThereAreChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wakes atomic.Int64
		app := types.NamespacedName{Name: "shop"}
		var throttled *throttle
		throttled = newThrottle(func(key types.NamespacedName) {
			wakes.Add(1)
			throttled.wrote(key, 0)
		})
		for i := range 20 { // three changes in a second are no burst
			throttled.soon(app)
			<-time.After(gather)
			synctest.Wait()
			assert.EqualValues(t, i+1, wakes.Load())
			<-time.After(time.Second/3 - gather)
		}
	})
}

// After a burst, rests shrink again: changes that no rest can gather are not held back for good.
func TestThrottle_restsShrinkAfterABurst(t *testing.T) {
	for _, every := range []time.Duration{1100 * time.Millisecond, 1300 * time.Millisecond, 1500 * time.Millisecond, 1900 * time.Millisecond} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var wakes atomic.Int64
				app := types.NamespacedName{Name: "shop"}
				var throttled *throttle
				throttled = newThrottle(func(key types.NamespacedName) {
					wakes.Add(1)
					throttled.wrote(key, 0)
				})
				for range 10 * 100 { // ten seconds of a change every 10 ms
					throttled.soon(app)
					<-time.After(10 * time.Millisecond)
				}
				for i := range 20 {
					before := wakes.Load()
					throttled.soon(app)
					<-time.After(gather)
					synctest.Wait()
					if i >= 8 {
						assert.Equal(t, before+1, wakes.Load(), "change %d", i)
					}
					<-time.After(every - gather)
				}
			})
		})
	}
}

// What happens while a status is on its way is not looked at before the rest is over.
func TestThrottle_restsAfterAWriteThatTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wakes atomic.Int64
		app := types.NamespacedName{Name: "shop"}
		throttled := newThrottle(func(types.NamespacedName) { wakes.Add(1) })
		throttled.soon(app)
		throttled.wrote(app, maxStatusBytes)
		<-time.After(restAfter(maxStatusBytes) - time.Millisecond)
		synctest.Wait()
		assert.Zero(t, wakes.Load())
		<-time.After(time.Millisecond)
		synctest.Wait()
		assert.EqualValues(t, 1, wakes.Load())
		throttled.forget(app)
		assert.Empty(t, throttled.byKey.All())
	})
}

// A status is held back only so long, and an Application that is settled is not enqueued for it.
func TestThrottle_holdsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wakes atomic.Int64
		app := types.NamespacedName{Name: "shop"}
		throttled := newThrottle(func(types.NamespacedName) { wakes.Add(1) })
		assert.True(t, throttled.hold(app, true))
		<-time.After(patience / 2)
		assert.True(t, throttled.hold(app, true))
		assert.False(t, throttled.hold(app, false))
		<-time.After(2 * patience)
		synctest.Wait()
		assert.Zero(t, wakes.Load(), "it was settled")

		for range 3 {
			assert.True(t, throttled.hold(app, true))
			<-time.After(patience / 4)
		}
		<-time.After(patience/4 + gather)
		synctest.Wait()
		assert.EqualValues(t, 1, wakes.Load())
		assert.False(t, throttled.hold(app, true), "longer than that")
		throttled.forget(app)
		assert.Empty(t, throttled.byKey.All())
	})
}

// A change is looked at soonest where nothing was written for a while.
func TestThrottle_isPromptAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := types.NamespacedName{Name: "shop"}
		var woken time.Time
		throttled := newThrottle(func(types.NamespacedName) { woken = time.Now() })
		after := func() time.Duration {
			start := time.Now()
			throttled.soon(app)
			<-time.After(gather)
			synctest.Wait()
			throttled.wrote(app, 0)
			return woken.Sub(start)
		}
		assert.Equal(t, promptly, after(), "the first")
		<-time.After(maxRest / 2)
		assert.Equal(t, gather, after(), "another one")
		<-time.After(gather + maxRest + time.Millisecond)
		assert.Equal(t, promptly, after(), "after a pause")
	})
}
