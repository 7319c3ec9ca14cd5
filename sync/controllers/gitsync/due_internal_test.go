package gitsync

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/manifest"
)

// C56: what was due when a pass began is not waited for: a job or a cluster that it waits for ends as
// an event, and until then there would be pass after pass.
func TestRequeueAfter_leavesOutWhatWasDue(t *testing.T) {
	now := time.Now()
	past, soon, later := now.Add(-time.Second), now.Add(time.Minute), now.Add(time.Hour)
	cases := map[string]struct {
		reason               string
		look, retry, showing time.Time
		want                 time.Time
	}{
		"nothing":               {reason: "there is nothing to wait for"},
		"a look under way":      {"the end of the job is an event", past, time.Time{}, time.Time{}, time.Time{}},
		"a try of a lost one":   {"its return is an event, and the next look stays due", later, past, time.Time{}, later},
		"exactly now":           {"the pass has seen it", now, time.Time{}, time.Time{}, time.Time{}},
		"the earliest of three": {"all count", later, later, soon, soon},
		"due since":             {"the pass that began before has not seen it", now.Add(time.Nanosecond), later, time.Time{}, now},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &scope{now: now, session: &session{nextLook: c.look, retryAt: c.retry, showDue: c.showing}}
			got := s.requeueAfter()
			if c.want.IsZero() {
				assert.Zero(t, got, c.reason)
				return
			}
			assert.Positive(t, got, c.reason)
			assert.LessOrEqual(t, got, max(c.want.Sub(now), time.Millisecond), c.reason)
		})
	}
}

// A cluster that failed is tried again once each time that is due, and not until the last of the
// others is done.
func TestRetryDue(t *testing.T) {
	now := time.Now()
	failed := apply.Result{Problems: []manifest.Problem{{Reason: apply.ReasonRefused}}}
	cases := map[string]struct {
		reason         string
		result         apply.Result
		retryAt, tried time.Time
		due            bool
	}{
		"refused":       {"what was refused may be let through by now", failed, now, now.Add(-time.Minute), true},
		"not answered":  {"the cluster may answer by now", apply.Result{Err: errors.New("lost")}, now, now.Add(-time.Minute), true},
		"too early":     {"of the back-off", failed, now.Add(time.Second), now.Add(-time.Minute), false},
		"tried already": {"another cluster is still at work", failed, now.Add(-time.Second), now.Add(-time.Millisecond), false},
		"all well":      {"nothing failed", apply.Result{}, now, now.Add(-time.Minute), false},
		"no back-off":   {"nothing is to be tried again", failed, time.Time{}, now, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &scope{now: now, session: &session{retryAt: c.retryAt}}
			assert.Equal(t, c.due, s.retryDue(&target{result: c.result, tried: c.tried}), c.reason)
		})
	}
}
