package applicationinstallation

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// C56: what was due when a pass began is not waited for: what the pass could not see to ends as an
// event, and until then there would be pass after pass.
func TestRequeueAfter_leavesOutWhatWasDue(t *testing.T) {
	now := time.Now()
	past, soon, later := now.Add(-time.Second), now.Add(time.Minute), now.Add(time.Hour)
	cases := map[string]struct {
		reason              string
		look, retry, health time.Time
		want                time.Time
	}{
		"nothing":               {reason: "there is nothing to wait for"},
		"no definition":         {"its return is an event, and the look stays due", past, time.Time{}, time.Time{}, time.Time{}},
		"exactly now":           {"the pass has seen it", time.Time{}, now, time.Time{}, time.Time{}},
		"a try without a look":  {"only the past is left out", past, soon, time.Time{}, soon},
		"the earliest of three": {"all count", later, later, soon, soon},
		"due since":             {"the pass that began before has not seen it", now.Add(time.Nanosecond), later, time.Time{}, now},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &scope{now: now, session: &session{nextLook: c.look, retryAt: c.retry, healthDue: c.health}}
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

// What failed for want of something that tells nobody when it is there is tried again after the
// kernel's back-off, unless the session knows when.
func TestFailed_isTriedAgain(t *testing.T) {
	now := time.Now()
	failure := reconcile.Failed(v1alpha1.SecretNotFoundReason, "%w", errors.New("read source credentials"))
	s := &scope{now: now, session: &session{nextLook: now.Add(-time.Second)}}
	outcome, err := s.failed(failure)
	assert.Equal(t, failure, err, "nothing is due, so the back-off is the kernel's")
	assert.Zero(t, outcome.RequeueAfter)

	s.session.retryAt = now.Add(time.Minute)
	outcome, err = s.failed(failure)
	assert.NotEqual(t, failure, err, "a pass for another reason is not another failure")
	assert.Positive(t, outcome.RequeueAfter)
}

// An uninstall that waits for a finalizer is not begun anew when the source is to be looked at.
func TestBeginUninstall_forgetsWhatWasDueOnce(t *testing.T) {
	later := time.Now().Add(time.Minute)
	one := &session{nextLook: later, healthDue: later, retryAt: later}
	one.beginUninstall()
	assert.Zero(t, one.nextLook)
	assert.Zero(t, one.healthDue)
	assert.Zero(t, one.retryAt)

	one.retryAt = later
	one.beginUninstall()
	assert.Equal(t, later, one.retryAt, "a failed uninstall has its own back-off")
}

// Who asks for a reconciliation has what failed tried again, also while that is waited out.
func TestRetryDue(t *testing.T) {
	now := time.Now()
	failed, well := acted{err: errors.New("refused")}, acted{}
	cases := map[string]struct {
		reason    string
		result    acted
		retryAt   time.Time
		requested string
		due       bool
	}{
		"waited out":      {"its time has not come", failed, now.Add(time.Minute), "asked", false},
		"its time":        {"the back-off is over", failed, now, "asked", true},
		"asked for":       {"somebody does not want to wait", failed, now.Add(time.Minute), "before", true},
		"stalled":         {"nothing is tried by itself", failed, time.Time{}, "asked", false},
		"stalled, asked":  {"somebody has acted elsewhere", failed, time.Time{}, "before", true},
		"well, asked for": {"there is nothing to try again", well, time.Time{}, "before", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inst := &v1alpha1.ApplicationInstallation{}
			inst.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "asked"}
			s := &scope{inst: inst, now: now, session: &session{result: c.result, retryAt: c.retryAt, requested: c.requested}}
			assert.Equal(t, c.due, s.retryDue(), c.reason)
		})
	}
}
