package applicationinstallation

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// taken returns the session after a correction with that outcome, while the failure of an install
// lasts.
func taken(failure error, result acted) *session {
	d := &driver{kernel: reconcile.NewKernel(minBackoff, maxBackoff)}
	inst := &v1alpha1.ApplicationInstallation{}
	inst.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
	x := &session{tried: tried{failure: failure}, installed: installed{digest: "a", moved: "a/1"}, result: findings{drifted: []string{"before"}, err: errors.New("refused before")}}
	if failure != nil {
		x.tried.attempts = attempts{Retry: reconcile.Retry{At: time.Now().Add(time.Hour), Failures: 3}, requested: "before"}
	}
	d.take(&scope{inst: inst, session: x}, &action{kind: correct, requested: "now"}, result)
	return x
}

// A release that failed is no reason to try it again before its time; one that is gone is.
func TestTake_ofACorrectionThatHasNothingToGoBy(t *testing.T) {
	failure := errors.New("a hook failed")
	cases := map[string]struct {
		reason  string
		failure error
		record  record
		again   bool
	}{
		"not deployed, as known":   {"the install failed, and is tried again at its time", failure, recordUnusable, false},
		"not deployed, or altered": {"somebody has changed it since", nil, recordUnusable, true},
		"gone after a failure":     {"there is nothing left that failed", failure, recordGone, true},
		"gone":                     {"somebody has removed it", nil, recordGone, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			unwatched := []manifest.Problem{{Reason: apply.ReasonNotWatched}}
			x := taken(c.failure, acted{findings: findings{err: errors.New("not deployed"), warnings: unwatched}, record: c.record})
			assert.Equal(t, unwatched, x.result.warnings, "what it may not watch is not tried again at every notice")
			if c.again {
				assert.Empty(t, x.installed.digest, c.reason)
				assert.NoError(t, x.tried.failure)
				assert.Error(t, x.result.err)
				return
			}
			assert.Equal(t, "a", x.installed.digest, c.reason)
			assert.Equal(t, failure, x.tried.failure)
			assert.Equal(t, 3, x.tried.Failures)
			assert.NotZero(t, x.tried.At)
			assert.Equal(t, []string{"before"}, x.result.drifted)
			assert.NoError(t, x.result.wrong(), "nothing would end what an earlier correction said")
			assert.Zero(t, x.correction.At)
		})
	}
}

// A correction neither ends the failure of an install, nor uses up the request to try that again.
func TestTake_ofACorrectionWhileAnInstallHasFailed(t *testing.T) {
	x := taken(errors.New("a hook failed"), acted{})
	assert.Error(t, x.tried.failure)
	assert.Equal(t, 3, x.tried.Failures)
	assert.Equal(t, "before", x.tried.requested)
}

// Corrections use the credentials that a look has just used, not those of the install.
func TestSession_keepsTheCredentialsOfTheLastLook(t *testing.T) {
	old, rotated := &content.Content{Hash: "old"}, &content.Content{Hash: "rotated"}
	x := &session{installed: installed{moved: "a/main@1", source: origin{credentials: old}}}
	x.prepare(&prepared{digest: "a", source: origin{credentials: rotated}, files: &files{revision: "main@2"}})
	assert.Equal(t, old, x.installed.source.credentials, "what is installed is from elsewhere")
	x.prepare(&prepared{digest: "a", source: origin{credentials: rotated}, files: &files{revision: "main@1"}})
	assert.Equal(t, rotated, x.installed.source.credentials)
}
