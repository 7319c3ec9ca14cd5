package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// S82, C22: a snapshot that another user has created in place of that of the state before is not what an undone rollback
// puts back, and goes on when the rollback is deleted.
func TestRollback_putsBackNoOtherSnapshotOfItsName(t *testing.T) {
	t.Parallel()
	w := captured(t)
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	safety := &v1alpha1.ApplicationSnapshot{}
	require.True(t, w.Exists(safety, r.Status.SafetySnapshot))
	require.Equal(t, string(safety.UID), r.Status.SafetySnapshotUID)
	require.NoError(t, w.Client.Delete(t.Context(), safety))
	hub.Change(w.World, safety, func(s *v1alpha1.ApplicationSnapshot) { s.Finalizers = nil }) // it is kept for the rollback otherwise
	w.AwaitGone(safety, safety.Name)
	w.write("c")
	forged := w.forgeSafety(r, nil)
	hub.Await(w.World, forged, "it is not ready", func(s *v1alpha1.ApplicationSnapshot) bool { return s.Status.Phase == v1alpha1.SnapshotReady })

	w.decide(r, v1alpha1.RollbackUndone)
	w.awaitPhase(r, v1alpha1.RollbackFailed)
	assert.Contains(t, r.Status.Error.Message, `the volumes are as before, but the objects could not be put back: ApplicationSnapshot "`+forged.Name+`" was deleted and created again`)
	assert.Equal(t, after, w.sh("cat data/file"))
}
