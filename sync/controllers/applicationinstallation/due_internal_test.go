package applicationinstallation

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/subscription"
)

func TestRequeueAfter_countsEverythingThatIsDue(t *testing.T) {
	now := time.Now()
	soon := now.Add(time.Minute)
	waiting := &v1alpha1.ApplicationInstallation{}
	waiting.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{Wait: true, Timeout: metav1.Duration{Duration: time.Minute}}}
	for _, s := range []*scope{
		{session: &session{}, looked: subscription.State{Due: soon}},
		{session: &session{tried: tried{attempts: attempts{Retry: reconcile.Retry{At: soon}}}}},
		{session: &session{correction: attempts{Retry: reconcile.Retry{At: soon}}}},
		{session: &session{comparison: comparison{at: soon}}},
		{session: &session{deadline: deadline{since: now}}},
	} {
		s.inst, s.now = waiting, now
		after := s.requeueAfter()
		assert.Positive(t, after, "%+v", s)
		assert.LessOrEqual(t, after, time.Minute, "%+v", s)
	}
	assert.Zero(t, (&scope{inst: waiting, now: now, session: &session{}}).requeueAfter())
}

// What failed for want of something that sends no event when it is there is tried again after the
// kernel's back-off, unless the session knows when.
func TestFailed_isTriedAgain(t *testing.T) {
	now := time.Now()
	failure := reconcile.Failed(v1alpha1.SecretNotFoundReason, "%w", errors.New("read source credentials"))
	inst := &v1alpha1.ApplicationInstallation{}
	s := &scope{inst: inst, now: now, session: &session{}, looked: subscription.State{Due: now.Add(-time.Second)}}
	outcome, err := s.failed(failure)
	assert.Equal(t, failure, err, "nothing is due, so the back-off is the kernel's")
	assert.Zero(t, outcome.RequeueAfter)

	s.session.tried.At = now.Add(time.Minute)
	outcome, err = s.failed(failure)
	assert.NotEqual(t, failure, err, "a pass for another reason is not another failure")
	assert.Positive(t, outcome.RequeueAfter)
}

// A pass while the source is asked once more is not counted as another failure.
func TestFailed_waitsForTheSource(t *testing.T) {
	now := time.Now()
	s := &scope{inst: &v1alpha1.ApplicationInstallation{}, now: now, session: &session{}, looked: subscription.State{Phase: subscription.Asking}, fetching: fetchingWanted}
	_, err := s.failed(reconcile.Failed(v1alpha1.ChartNotFoundReason, "not found"))
	assert.Equal(t, reconcile.Waiting(v1alpha1.ChartNotFoundReason, 0, "%w", reconcile.Failed(v1alpha1.ChartNotFoundReason, "not found")), err)
}

// An uninstall that waits for a finalizer is not started again when something else was due.
func TestBeginUninstall_forgetsWhatWasDueOnce(t *testing.T) {
	later := time.Now().Add(time.Minute)
	one := &session{comparison: comparison{at: later}, deadline: deadline{since: later}, tried: tried{attempts: attempts{Retry: reconcile.Retry{At: later, Failures: 8}}}}
	one.beginUninstall()
	assert.Zero(t, one.comparison.at)
	assert.Zero(t, one.deadline.since)
	assert.Zero(t, one.tried.attempts, "a long back-off of the install is none of the uninstall")

	one.tried.At = later
	one.beginUninstall()
	assert.Equal(t, later, one.tried.At, "a failed uninstall has its own back-off")
}

// Who asks for a reconciliation has what failed tried again, also while that is waited out.
func TestRetryDue(t *testing.T) {
	now := time.Now()
	cases := map[string]struct {
		reason    string
		retry     reconcile.Retry
		requested string
		due       bool
	}{
		"waited out":      {"its time has not come", reconcile.Retry{At: now.Add(time.Minute), Failures: 1}, "asked", false},
		"its time":        {"the back-off is over", reconcile.Retry{At: now, Failures: 1}, "asked", true},
		"asked for":       {"somebody does not want to wait", reconcile.Retry{At: now.Add(time.Minute), Failures: 1}, "before", true},
		"stalled":         {"nothing is tried by itself", reconcile.Retry{Failures: 1}, "asked", false},
		"stalled, asked":  {"somebody has acted elsewhere", reconcile.Retry{Failures: 1}, "before", true},
		"well, asked for": {"there is nothing to try again", reconcile.Retry{}, "before", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inst := &v1alpha1.ApplicationInstallation{}
			inst.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "asked"}
			s := &scope{inst: inst, now: now, session: &session{}}
			failed := attempts{Retry: c.retry, requested: c.requested}
			assert.Equal(t, c.due, s.retryDue(failed), c.reason)
			assert.Equal(t, !c.due && !c.retry.At.IsZero(), s.backsOff(failed), c.reason)
		})
	}
}

// K3: what a correction could not correct is not known to be changed any more, so all is compared.
func TestCorrectionDue_comparesAllAfterAFailure(t *testing.T) {
	x := &session{acted: true}
	s := &scope{inst: &v1alpha1.ApplicationInstallation{}, now: time.Now(), session: x}
	assert.Empty(t, s.correctionDue(false))
	assert.Equal(t, correct, s.correctionDue(true))
	x.correction.Retry = reconcile.Retry{At: s.now.Add(time.Minute), Failures: 1}
	assert.Equal(t, compare, s.correctionDue(true))
}
