package reconcile_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

func TestReasonOf_looksIntoWrappedErrors(t *testing.T) {
	assert.Empty(t, reconcile.ReasonOf(nil))
	assert.Empty(t, reconcile.ReasonOf(errors.New("broken")))
	failed := reconcile.Failed(v1alpha1.GitFailedReason, "broken")
	assert.Equal(t, v1alpha1.GitFailedReason, reconcile.ReasonOf(fmt.Errorf("step: %w", failed)))
}

func TestRetryAfter_keepsWhatTheErrorSays(t *testing.T) {
	failed := fmt.Errorf("step: %w", reconcile.Failed(v1alpha1.GitFailedReason, "broken"))
	stalled := reconcile.Stalled(v1alpha1.InvalidSpecReason, "bad")
	unknown := errors.New("broken")
	assert.Equal(t, stalled, reconcile.RetryAfter(stalled, time.Minute), "only a person can help")
	assert.Equal(t, unknown, reconcile.RetryAfter(unknown, time.Minute), "it has no reason to show")
	assert.Equal(t, failed, reconcile.RetryAfter(failed, 0), "the kernel's back-off is left")
	assert.NoError(t, reconcile.RetryAfter(nil, time.Minute))

	later := reconcile.RetryAfter(failed, time.Minute)
	require.ErrorIs(t, later, failed)
	assert.Equal(t, "step: broken", later.Error())
	assert.Equal(t, v1alpha1.GitFailedReason, reconcile.ReasonOf(later))

	w := newWorld(t, newGitSync())
	for range 2 {
		result, err := w.begin(w.get(t)).Finish(t.Context(), reconcile.Outcome{}, later)
		require.NoError(t, err)
		assert.Equal(t, time.Minute, result.RequeueAfter, "another pass does not postpone the next try")
	}
}
