package reconcile_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/reconcile"
)

// A quick job is not worth a write of the status, and a slow one no more than it has steps.
func TestProgress_wakesOnlyForNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done, woken atomic.Int64
		p := reconcile.NewProgress(done.Load, func() { woken.Add(1) })
		assert.False(t, p.Running())

		end := p.Begin()
		time.Sleep(4 * time.Second)
		assert.True(t, p.Running())
		_, shows := p.Shown()
		assert.False(t, shows, "most jobs end before there is anything to show")
		end()
		time.Sleep(time.Minute)
		assert.Zero(t, woken.Load(), "a quick job enqueues nothing")
		assert.False(t, p.Running())

		end = p.Begin()
		time.Sleep(6 * time.Second)
		shown, shows := p.Shown()
		assert.True(t, shows)
		assert.Zero(t, shown)
		assert.EqualValues(t, 1, woken.Load())
		time.Sleep(time.Minute)
		assert.EqualValues(t, 1, woken.Load(), "nothing is new")

		done.Store(7)
		shown, _ = p.Shown()
		assert.Zero(t, shown, "what is shown changes when its owner is enqueued")
		time.Sleep(5 * time.Second)
		shown, _ = p.Shown()
		assert.EqualValues(t, 7, shown)
		assert.EqualValues(t, 2, woken.Load())
		end()
		_, shows = p.Shown()
		assert.False(t, shows, "the result says more")
	})
}

// The end of a job that was superseded does not end the next.
func TestProgress_ofOneJobAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := reconcile.NewProgress(func() int { return 1 }, func() {})
		endFirst := p.Begin()
		endSecond := p.Begin()
		endFirst()
		assert.True(t, p.Running())
		time.Sleep(6 * time.Second)
		_, shows := p.Shown()
		assert.True(t, shows)
		endSecond()
		assert.False(t, p.Running())
	})
}

func TestCoarse(t *testing.T) {
	for reason, tc := range map[string]struct{ done, all, want int }{
		"nothing to do":             {0, 0, 0},
		"few objects, each counts":  {3, 7, 3},
		"many objects, in 20 steps": {1999, 20000, 1000},
		"a whole step":              {2000, 20000, 2000},
		"all":                       {20000, 20000, 20000},
	} {
		assert.Equal(t, tc.want, reconcile.Coarse(tc.done, tc.all), reason)
	}
}

func TestAmount(t *testing.T) {
}
