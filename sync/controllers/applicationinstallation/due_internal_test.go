package applicationinstallation

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

func TestRequeueAfter_countsEverythingThatIsDue(t *testing.T) {
	now := time.Now()
	soon := now.Add(time.Minute)
	waiting := &v1alpha1.ApplicationInstallation{}
	waiting.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{Wait: true, Timeout: metav1.Duration{Duration: time.Minute}}}
	for _, session := range []*session{
		{look: reconcile.Retry{At: soon}},
		{retry: reconcile.Retry{At: soon}},
		{compareAt: soon},
		{healthAwaited: now},
	} {
		after := (&scope{inst: waiting, now: now, session: session}).requeueAfter()
		assert.Positive(t, after, "%+v", session)
		assert.LessOrEqual(t, after, time.Minute, "%+v", session)
	}
	assert.Zero(t, (&scope{inst: waiting, now: now, session: &session{}}).requeueAfter())
}

// What failed for want of something that tells nobody when it is there is tried again after the
// kernel's back-off, unless the session knows when.
func TestFailed_isTriedAgain(t *testing.T) {
	now := time.Now()
	failure := reconcile.Failed(v1alpha1.SecretNotFoundReason, "%w", errors.New("read source credentials"))
	inst := &v1alpha1.ApplicationInstallation{}
	s := &scope{inst: inst, now: now, session: &session{look: reconcile.Retry{At: now.Add(-time.Second)}}}
	outcome, err := s.failed(failure)
	assert.Equal(t, failure, err, "nothing is due, so the back-off is the kernel's")
	assert.Zero(t, outcome.RequeueAfter)

	s.session.retry.At = now.Add(time.Minute)
	outcome, err = s.failed(failure)
	assert.NotEqual(t, failure, err, "a pass for another reason is not another failure")
	assert.Positive(t, outcome.RequeueAfter)
}

// An uninstall that waits for a finalizer is not begun anew when the source is to be looked at.
func TestBeginUninstall_forgetsWhatWasDueOnce(t *testing.T) {
	later := time.Now().Add(time.Minute)
	one := &session{look: reconcile.Retry{At: later}, healthAwaited: later, retry: reconcile.Retry{At: later}}
	one.beginUninstall()
	assert.Zero(t, one.look.At)
	assert.Zero(t, one.healthAwaited)
	assert.Zero(t, one.retry.At)

	one.retry.At = later
	one.beginUninstall()
	assert.Equal(t, later, one.retry.At, "a failed uninstall has its own back-off")
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
			s := &scope{inst: inst, now: now, session: &session{result: c.result, retry: reconcile.Retry{At: c.retryAt}, requested: c.requested}}
			assert.Equal(t, c.due, s.retryDue(), c.reason)
		})
	}
}
