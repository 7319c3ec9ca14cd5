package applicationinstallation

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// rolledBack returns a driver, and a scope after a rollback of what is installed, the digest "a", with
// that outcome. Everything that failed is due again.
func rolledBack(result acted) (*driver, *scope) {
	d := &driver{kernel: reconcile.NewKernel(minBackoff, maxBackoff)}
	x := &session{installed: installed{digest: "a", moved: "a/1"}, deadline: deadline{since: time.Now()}}
	s := &scope{inst: &v1alpha1.ApplicationInstallation{}, session: x, digest: "a"}
	d.take(s, &action{kind: rollBack, why: "after 1s"}, result)
	s.now = time.Now().Add(maxBackoff)
	return d, s
}

// K47: a rollback that failed is tried again, and not the install of what it gives up.
func TestTake_ofARollbackThatFailed(t *testing.T) {
	d, s := rolledBack(notInstalled(errors.New("refused")))
	assert.NotZero(t, s.session.tried.At)
	assert.NotZero(t, s.session.deadline.since)
	same := &prepared{digest: "a", files: &files{revision: "1"}}
	assert.False(t, s.mustInstall(same))
	assert.False(t, s.needsFiles())
	why, due := d.overdue(s)
	assert.True(t, due)
	assert.Equal(t, "after 1s", why)

	s.now = s.session.tried.At.Add(-time.Millisecond)
	_, due = d.overdue(s)
	assert.False(t, due, "the back-off is not over")

	moved := &prepared{digest: "a", files: &files{revision: "2"}}
	assert.True(t, s.mustInstall(moved), "something else is wanted")
	s.takeInstall(moved, acted{})
	assert.Empty(t, s.session.tried.givingUp)
}

// What there is no release of any more cannot be rolled back: it is installed again.
func TestTake_ofARollbackOfWhatIsGone(t *testing.T) {
	d, s := rolledBack(acted{findings: findings{failure: errors.New("there is no release")}, record: recordGone})
	assert.True(t, s.needsFiles())
	_, due := d.overdue(s)
	assert.False(t, due)
}

// K47: what turns out to be healthy when it is looked at once more stays, also after a try that failed.
func TestTake_ofARollbackOfWhatIsHealthy(t *testing.T) {
	d, s := rolledBack(notInstalled(errors.New("the cluster does not answer")))
	d.take(s, &action{kind: rollBack, why: "after 1s"}, spared("after 1s", errHealthy))
	assert.NoError(t, s.session.tried.failure)
	assert.Zero(t, s.session.deadline.since)
	assert.Zero(t, s.session.tried.Failures)
	assert.True(t, s.session.result.complete())
	assert.False(t, s.needsFiles())
	_, due := d.overdue(s)
	assert.False(t, due)
}

// P13: what cannot be looked at is not given up: that is tried again.
func TestTake_ofARollbackOfWhatCannotBeRead(t *testing.T) {
	d, s := rolledBack(spared("after 1s", errors.New("read Secret: refused")))
	assert.EqualError(t, s.session.tried.failure, "after 1s; not rolled back, because its health could not be checked again: read Secret: refused")
	assert.Empty(t, s.session.tried.givenUp)
	assert.NotZero(t, s.session.deadline.since)
	_, due := d.overdue(s)
	assert.True(t, due)

	s.lost = errors.New("unreachable")
	_, due = d.overdue(s)
	assert.False(t, due, "it cannot be had while the cluster is lost")
}

// P13: time that ran out while the cluster was lost is no verdict.
func TestAwaitHealthAnew(t *testing.T) {
	began := time.Now()
	o := &v1alpha1.HelmDeployOptions{Wait: true, Atomic: true, Timeout: metav1.Duration{Duration: time.Minute}}
	for _, c := range []struct {
		reason  string
		awaited time.Time
		anew    bool
	}{
		{"its time ran out unseen", began.Add(-time.Hour), true},
		{"its time is not over", began, false},
		{"it has been healthy", time.Time{}, false},
	} {
		inst := &v1alpha1.ApplicationInstallation{}
		inst.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: o}
		x := &session{deadline: deadline{since: c.awaited}, installed: installed{moved: "a/1"}}
		s := &scope{inst: inst, session: x, now: began, lost: errors.New("unreachable")}
		s.awaitHealthAnew()
		assert.Equal(t, c.awaited, x.deadline.since, c.reason)
		assert.False(t, s.givesUp(), c.reason)

		s.lost = nil
		s.awaitHealthAnew()
		assert.Equal(t, c.anew, x.deadline.since != c.awaited, c.reason)
		assert.False(t, s.givesUp(), c.reason)
	}
}

// A rollback that ended while the cluster was lost leaves nothing to be waited for.
func TestAwaitHealthAnew_ofWhatWasGivenUp(t *testing.T) {
	x := &session{deadline: deadline{since: time.Now().Add(-time.Hour)}, installed: installed{moved: "a/1"}}
	inst := &v1alpha1.ApplicationInstallation{}
	inst.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{Wait: true, Atomic: true}}
	s := &scope{inst: inst, session: x, now: time.Now(), lost: errors.New("unreachable")}
	s.awaitHealthAnew()
	require.True(t, x.deadline.unseen)
	x.deadline.since = time.Time{}
	s.lost = nil
	s.awaitHealthAnew()
	assert.False(t, x.deadline.unseen)
	assert.Zero(t, x.deadline.since)
}

func TestTake_ofARollback(t *testing.T) {
	d, s := rolledBack(acted{findings: findings{failure: reconcile.Stalled(v1alpha1.NotHealthyReason, "rolled back")}, givenUp: "a/1"})
	assert.Equal(t, "a/1", s.session.tried.givenUp)
	assert.Zero(t, s.session.deadline.since)
	assert.False(t, s.needsFiles())
	_, due := d.overdue(s)
	assert.False(t, due)
}
