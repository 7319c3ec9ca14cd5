package reconcile_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// A job that began before a pass has written the status does not take that back.
func TestRecordChange_leavesWhatPassesWrite(t *testing.T) {
	w := newWorld(t, newGitSync())
	started := w.get(t)
	gs := w.get(t)
	_, err := w.begin(gs).Finish(t.Context(), reconcile.Outcome{}, reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0, "lost"))
	require.NoError(t, err)

	changed := started.DeepCopy()
	changed.Status.Inventory = &v1alpha1.Inventory{Count: 7}
	require.NoError(t, w.kernel.RecordChange(t.Context(), w.client, started, changed))
	now := w.get(t)
	require.NotNil(t, now.Status.Inventory)
	assert.EqualValues(t, 7, now.Status.Inventory.Count)
	assert.Equal(t, v1alpha1.ClusterUnreachableReason, conditions.GetReason(now, v1alpha1.ReadyCondition))

	w.begin(started) // read from a cache that is behind
	assert.Equal(t, now.Status, started.Status, "the whole status is remembered")
}

// Nor does a pass that began before a job recorded something forget that.
func TestWrite_remembersWhatJobsRecord(t *testing.T) {
	w := newWorld(t, newGitSync())
	started := w.get(t)
	gs := w.get(t)
	pass := w.begin(gs)
	changed := started.DeepCopy()
	changed.Status.Inventory = &v1alpha1.Inventory{Count: 7}
	require.NoError(t, w.kernel.RecordChange(t.Context(), w.client, started, changed))
	_, err := pass.Finish(t.Context(), reconcile.Outcome{}, reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0, "lost"))
	require.NoError(t, err)

	w.begin(started) // read from a cache that is behind
	require.NotNil(t, started.Status.Inventory)
	assert.EqualValues(t, 7, started.Status.Inventory.Count)
	assert.Equal(t, v1alpha1.ClusterUnreachableReason, conditions.GetReason(started, v1alpha1.ReadyCondition))
}
