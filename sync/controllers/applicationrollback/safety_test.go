package applicationrollback_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

// C22, S82: what is forbidden while the state before is put back is tried again: the application is down until then.
func TestRollback_revertsOnceItMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)

	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("0")}},
	}
	w.Create(quota)
	require.NoError(t, w.Client.Delete(t.Context(), w.settings()))
	refuses := func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "probe"}}
		return w.Client.Create(t.Context(), probe, client.DryRunAll) != nil
	}
	require.True(t, w.Eventually(refuses))
	w.decide(r, v1alpha1.RollbackUndone)
	hub.Await(w.World, r, "it is refused, and tried again", func(r *v1alpha1.ApplicationRollback) bool {
		return r.Status.Phase == v1alpha1.RollbackReverting && strings.Contains(conditions.GetMessage(r, v1alpha1.ReadyCondition), "exceeded quota")
	})
	require.NoError(t, w.Client.Delete(t.Context(), quota))
	require.True(t, w.Eventually(func() bool { return !refuses() }))
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
}
