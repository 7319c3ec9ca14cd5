package reconcile_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// kubectl shows a message up to the first line break, and the cause often comes after it.
func TestFinish_messagesAreOneLine(t *testing.T) {
	const many, one = "fetch oci://r/web: errors:\ndenied: no pull access\nunauthorized: log in\n", "fetch oci://r/web: errors: denied: no pull access; unauthorized: log in"
	w := newWorld(t, newGitSync())
	for range 2 {
		gs := w.get(t)
		pass := w.begin(gs)
		conditions.MarkFalse(gs, v1alpha1.InstalledCondition, v1alpha1.InstallFailedReason, "%s", many)
		_, err := pass.Finish(t.Context(), reconcile.Outcome{}, reconcile.Waiting(v1alpha1.GitFailedReason, 0, "%s", many))
		require.NoError(t, err)
	}

	got := w.get(t)
	for _, name := range []string{v1alpha1.ReadyCondition, v1alpha1.ReconcilingCondition, v1alpha1.InstalledCondition} {
		assert.Equal(t, one, conditions.GetMessage(got, name), name)
	}
	assert.Equal(t, 1, w.writes, "the same message is no change")
	require.Len(t, w.events.Events, 1)
	assert.Equal(t, "Warning GitFailed "+one, <-w.events.Events)
	assert.Equal(t, one, reconcile.Problems([]manifest.Problem{{Message: many}})[0].Message)
}

// A pass that is not done says nothing new with a message of many lines either.
func TestFinish_pendingComparesMessagesOfOneLine(t *testing.T) {
	const many = "fetch oci://r/web: errors:\ndenied: no pull access\n"
	w := newWorld(t, newGitSync())
	gs := w.get(t)
	pass := w.begin(gs)
	mark := func(gs *v1alpha1.GitSync) {
		conditions.MarkFalse(gs, v1alpha1.InstalledCondition, v1alpha1.InstallFailedReason, "%s", many)
	}
	mark(gs)
	require.NoError(t, pass.Write(t.Context()))
	gs = w.get(t)
	gs.Generation++
	pass = w.begin(gs)
	mark(gs)
	_, err := pass.Finish(t.Context(), reconcile.Outcome{Pending: true}, nil)
	require.NoError(t, err)
	assert.Equal(t, 1, w.writes)
}
