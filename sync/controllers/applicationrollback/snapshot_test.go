package applicationrollback_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// other creates an ApplicationSnapshot of the application that no controller acts on.
func (w *world) other() *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	w.Create(&v1alpha1.ApplicationSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Snapshotter: "example.com/other"})
	s := &v1alpha1.ApplicationSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1alpha1.ApplicationSnapshotSpec{
		SnapshotClassName: w.Namespace, Source: v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "db"},
	}}
	w.Create(s)
	return s
}

func (w *world) goOn(s *v1alpha1.ApplicationSnapshot, to v1alpha1.SnapshotPhase) {
	w.T.Helper()
	before := s.DeepCopy()
	s.Status.Phase = to
	require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), s, client.MergeFrom(before)))
}

// awaitHolding waits until a rollback waits for the other snapshot, and checks that it has not changed anything.
func (w *world) awaitHolding(r *v1alpha1.ApplicationRollback) {
	w.T.Helper()
	hub.Await(w.World, r, "not waiting", func(r *v1alpha1.ApplicationRollback) bool {
		return r.Status.Phase == v1alpha1.RollbackHolding && conditions.GetMessage(r, v1alpha1.ReadyCondition) ==
			`marking the objects of the application: waiting for ApplicationSnapshot "other" to release the application`
	})
	w.requireUntouched(r)
}

// requireUntouched checks that a rollback holds nothing, and that the application is as it was.
func (w *world) requireUntouched(r *v1alpha1.ApplicationRollback) {
	w.T.Helper()
	assert.Empty(w.T, r.Status.Held)
	w.requireState(after)
	settings := w.settings()
	require.True(w.T, w.Exists(settings, settings.Name))
	_, held := hold.By(settings)
	assert.False(w.T, held)
}

// S87, C63: a snapshot that began between the snapshot of the state before and the moment at which a rollback holds the
// application is waited for, in whichever of its phases it is; so is one when a rollback is undone. A rollback that is
// deleted meanwhile has nothing to revert.
func TestRollback_waitsForASnapshot(t *testing.T) {
	t.Parallel()
	w := captured(t)
	other := w.other()
	w.goOn(other, v1alpha1.SnapshotCapturing)
	deleted := w.rollback("deleted", "one")
	w.Create(deleted)
	w.awaitHolding(deleted)
	require.NoError(t, w.Client.Delete(t.Context(), deleted))
	w.AwaitGone(deleted, deleted.Name)
	w.requireUntouched(deleted)

	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitHolding(r)
	for _, phase := range []v1alpha1.SnapshotPhase{v1alpha1.SnapshotQuiescing, v1alpha1.SnapshotCutting, v1alpha1.SnapshotReleasing} {
		w.goOn(other, phase)
		r = hub.Reconcile(w.World, r)
		w.awaitHolding(r)
	}
	w.goOn(other, v1alpha1.SnapshotWaiting)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)

	w.goOn(other, v1alpha1.SnapshotCutting)
	w.decide(r, v1alpha1.RollbackUndone)
	assert.Equal(t, `waiting for ApplicationSnapshot "other" to release the application`, hub.AwaitReason(w.World, r, v1alpha1.RollbackWaitsReason))
	assert.Equal(t, v1alpha1.RollbackCompleted, r.Status.Phase)
	w.requireState(before)
	w.goOn(other, v1alpha1.SnapshotFailed)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
}

// C22: a rollback that has waited for too long has changed nothing, and so reverts nothing.
func TestRollback_waitsForASnapshotNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t)
	w.alone(limits{v1alpha1.RollbackHolding: 2 * time.Second})
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	w.goOn(w.other(), v1alpha1.SnapshotQuiescing)

	late := w.rollback("late", "one")
	w.Create(late)
	w.awaitPhase(late, v1alpha1.RollbackFailed)
	assert.Equal(t, v1alpha1.RollbackTimeoutReason, late.Status.Error.Reason)
	assert.Equal(t, `not done within 2s: waited for ApplicationSnapshot "other" to release the application`, late.Status.Error.Message)
	w.requireUntouched(late)
}
