package reconcile_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/reconcile"
)

func TestRetry_backsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reconcile.Retry
		assert.False(t, r.Due(time.Now()), "nothing has failed")
		backoff := reconcile.NewKernel(time.Second, 8*time.Second).Backoff
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second} {
			r.Failed(backoff)
			assert.Equal(t, want, time.Until(r.At), "after %d failures", r.Failures)
			assert.False(t, r.Due(time.Now().Add(want-1)))
			assert.True(t, r.Due(time.Now().Add(want)))
		}
	})
}

// What only a person can mend is not tried again by itself, and the next failure is not the first.
func TestRetry_Ended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reconcile.Retry
		backoff := reconcile.NewKernel(time.Second, 8*time.Second).Backoff
		r.Ended(errors.New("failed"), backoff)
		assert.Equal(t, reconcile.Retry{At: time.Now().Add(time.Second), Failures: 1}, r)
		r.Ended(reconcile.Stalled("Reason", "stalled"), backoff)
		assert.Equal(t, reconcile.Retry{Failures: 2}, r)
		r.Ended(errors.New("failed"), backoff)
		assert.Equal(t, reconcile.Retry{At: time.Now().Add(4 * time.Second), Failures: 3}, r)
		r.Ended(nil, backoff)
		assert.Zero(t, r)
	})
}

// C56: a pass cannot handle everything that is due when it begins: a job or a lost cluster ends with an
// event, and until then there would be pass after pass.
func TestUntilNext_leavesOutWhatWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		<-time.After(time.Second)
		at := func(d time.Duration) time.Time { return began.Add(d) }
		for name, c := range map[string]struct {
			due    []time.Time
			want   time.Duration
			reason string
		}{
			"nothing":      {nil, 0, "there is nothing to wait for"},
			"never":        {[]time.Time{{}}, 0, "no time was set"},
			"past":         {[]time.Time{at(-time.Second)}, 0, "the pass has handled it, or cannot"},
			"exactly then": {[]time.Time{at(0)}, 0, "the pass has seen it"},
			"since":        {[]time.Time{at(time.Nanosecond)}, time.Millisecond, "the pass has not seen it"},
			"earliest":     {[]time.Time{at(time.Hour), {}, at(-time.Second), at(time.Minute)}, time.Minute - time.Second, "only the past is left out"},
		} {
			assert.Equal(t, c.want, reconcile.UntilNext(began, c.due...), "%s: %s", name, c.reason)
		}
	})
}
