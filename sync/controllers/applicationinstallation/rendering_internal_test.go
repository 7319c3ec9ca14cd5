package applicationinstallation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// What was being rendered when the process ended waits for its turn, longer each time, and says so; whatever
// else is wanted does not wait.
func TestSession_whatWasInterruptedWaitsItsTurn(t *testing.T) {
	backoff := reconcile.NewKernel(minBackoff, maxBackoff).Backoff
	cases := map[string]struct {
		reason   string
		attempts int32
		waits    time.Duration
		says     string
	}{
		"once":    {"a restart costs little", 1, 2 * time.Second, "chart web-1.0.0 was interrupted; others go first"},
		"again":   {"it may be to blame", 4, 16 * time.Second, "chart web-1.0.0 was interrupted 4 times in a row; others go first"},
		"forever": {"there is an end to it", 1000, 10 * time.Minute, "1000 times in a row"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inst := &v1alpha1.ApplicationInstallation{}
			inst.Status.Rendering = &v1alpha1.RenderingStatus{Chart: "web-1.0.0", Input: "abc/1.0.0/sha256:1", Attempts: c.attempts}
			x := &session{}
			x.restore(inst)
			x.awaitTurn(backoff)
			assert.Equal(t, v1alpha1.RenderingInterruptedReason, reconcile.ReasonOf(x.tried.failure), c.reason)
			require.ErrorContains(t, x.tried.failure, c.says, c.reason)
			assert.WithinDuration(t, time.Now().Add(c.waits), x.tried.At, time.Second, c.reason)

			s := &scope{inst: inst, session: x, now: time.Now(), digest: "abc"}
			assert.False(t, s.needsFiles(), "it waits")
			s.now = x.tried.At
			assert.True(t, s.needsFiles(), "its turn has come")
			s.now, s.digest = time.Now(), "def"
			assert.True(t, s.needsFiles(), "something else is not to blame")
			s.digest = "abc"
			inst.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
			assert.True(t, s.needsFiles(), "a user requests it")
		})
	}
	x := &session{}
	x.restore(&v1alpha1.ApplicationInstallation{})
	x.awaitTurn(backoff)
	require.NoError(t, x.tried.failure, "nothing was interrupted")
}
