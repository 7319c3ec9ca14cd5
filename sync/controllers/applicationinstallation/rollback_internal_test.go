package applicationinstallation

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// rolledBack returns a driver, and a scope after a rollback of what is installed, the digest "a", with
// that outcome. Everything that failed is due again.
func rolledBack(result acted) (*driver, *scope) {
	d := &driver{kernel: reconcile.NewKernel(minBackoff, maxBackoff)}
	x := &session{installed: installed{digest: "a", moved: "a/1"}, healthAwaited: time.Now()}
	s := &scope{inst: &v1alpha1.ApplicationInstallation{}, session: x, digest: "a"}
	d.take(s, &action{kind: rollBack, why: "after 1s"}, result)
	s.now = time.Now().Add(maxBackoff)
	return d, s
}

// K47: a rollback that failed is tried again, and not the install of what it gives up.
func TestTake_ofARollbackThatFailed(t *testing.T) {
	d, s := rolledBack(acted{failure: errors.New("refused")})
	assert.NotZero(t, s.session.install.At)
	assert.NotZero(t, s.session.healthAwaited)
	same := &prepared{digest: "a", files: &files{revision: "1"}}
	assert.False(t, s.mustInstall(same))
	assert.False(t, s.needsFiles())
	why, due := d.overdue(s)
	assert.True(t, due)
	assert.Equal(t, "after 1s", why)

	s.now = s.session.install.At.Add(-time.Millisecond)
	_, due = d.overdue(s)
	assert.False(t, due, "the back-off is not over")

	moved := &prepared{digest: "a", files: &files{revision: "2"}}
	assert.True(t, s.mustInstall(moved), "something else is wanted")
	s.takeInstall(moved, acted{})
	assert.Empty(t, s.session.givingUp)
}

// What there is no release of any more cannot be rolled back: it is installed again.
func TestTake_ofARollbackOfWhatIsGone(t *testing.T) {
	d, s := rolledBack(acted{failure: errors.New("there is no release"), record: recordGone})
	assert.True(t, s.needsFiles())
	_, due := d.overdue(s)
	assert.False(t, due)
}

func TestTake_ofARollback(t *testing.T) {
	d, s := rolledBack(acted{failure: reconcile.Stalled(v1alpha1.NotHealthyReason, "rolled back"), givenUp: "a/1"})
	assert.Equal(t, "a/1", s.session.givenUp)
	assert.Zero(t, s.session.healthAwaited)
	assert.False(t, s.needsFiles())
	_, due := d.overdue(s)
	assert.False(t, due)
}
