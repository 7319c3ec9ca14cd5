package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// S82: a snapshot that another user has given the name of that of the state before is not what is gone back to.
func TestRollback_takesNoOtherSnapshotForTheStateBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	w.Create(&v1alpha1.ApplicationSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Snapshotter: "example.com/other"})
	first := w.rollback("first", "one")
	first.Spec.SnapshotClassName = w.Namespace
	w.Create(first)
	enter := func(phase v1alpha1.RollbackPhase) {
		was := first.DeepCopy()
		first.Status.Phase = phase
		require.NoError(t, w.Client.Status().Patch(t.Context(), first, client.MergeFrom(was)))
	}
	enter(v1alpha1.RollbackChecking)

	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackPending)
	forged := &v1alpha1.ApplicationSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "rollback-" + string(r.UID)}, Spec: v1alpha1.ApplicationSnapshotSpec{
		SnapshotClassName: class, Source: v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "db"},
		PersistentVolumeClaimFilter: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}},
	}}
	w.Create(forged)
	enter(v1alpha1.RollbackFinal)
	hub.Reconcile(w.World, r)
	w.awaitPhase(r, v1alpha1.RollbackFailed)
	assert.Equal(t, v1alpha1.SafetySnapshotFailedReason, r.Status.Error.Reason)
	assert.Contains(t, r.Status.Error.Message, forged.Name+`" is not what ApplicationRollback "back" takes`)
	w.requireState(after)
}
