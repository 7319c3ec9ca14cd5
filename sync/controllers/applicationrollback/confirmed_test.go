package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// C22, C64: that a rollback cannot be undone any more is in its status before a volume of before is dropped, and a process
// that takes over then drops it.
func TestRollback_dropsVolumesOnceItIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t)
	process := w.alone(nil)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	old := w.claim("data-db-0").Spec.VolumeName
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	process.Stop()

	w.decide(r, v1alpha1.RollbackConfirmed)
	for r.Status.Phase != v1alpha1.RollbackFinal {
		did := w.killOnce(r)
		require.Equal(t, corev1.PersistentVolumeReclaimRetain, w.volume(old).Spec.PersistentVolumeReclaimPolicy, "%v at phase %s", did, r.Status.Phase)
	}
	w.decide(r, v1alpha1.RollbackUndone)
	w.alone(nil)
	hub.AwaitReason(w.World, r, v1alpha1.UndoRefusedReason)
	assert.True(t, w.Eventually(func() bool { return !w.volumeExists(old) }))
	w.requireState(before)
	assert.Empty(t, r.Status.Volumes[0].BeforePolicy, "it is given back only once")
}
