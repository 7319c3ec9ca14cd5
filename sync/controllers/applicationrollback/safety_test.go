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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// S82: a snapshot that another user has given the name of that of the state before is not what is gone back to, even if
// it is just like that: it was created before.
func TestRollback_takesNoOtherSnapshotForTheStateBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	release := w.keepWaiting()
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackPending)
	forged := w.forgeSafety(r, nil)
	w.write(after)
	release()
	hub.Reconcile(w.World, r)
	w.awaitPhase(r, v1alpha1.RollbackFailed)
	assert.Equal(t, v1alpha1.SafetySnapshotFailedReason, r.Status.Error.Reason)
	assert.Contains(t, r.Status.Error.Message, forged.Name+`" was created before ApplicationRollback "back" takes it`)
	w.requireState(after)
}

// S82: neither is one that has less in it, and was created just when the rollback takes its own.
func TestRollback_takesNoSmallerSnapshotForTheStateBefore(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t)
	aparts.Store(w.Namespace, true)
	w.install(volumes.ImmediateClass)
	w.write(before)
	content := w.snapshot("one").Status.BoundSnapshotContentName
	w.write(after)
	r := w.rollback("back", "one")
	w.Create(r)
	forged := w.forgeSafety(r, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}})
	was := r.DeepCopy()
	r.Status.Phase, r.Status.PhaseTime = v1alpha1.RollbackSaving, ptr.To(metav1.Now())
	r.Status.ContentName, r.Status.SafetySnapshot = content, forged.Name
	require.NoError(t, w.Client.Status().Patch(t.Context(), r, client.MergeFrom(was)))
	w.alone(nil)
	w.awaitPhase(r, v1alpha1.RollbackFailed)
	assert.Equal(t, v1alpha1.SafetySnapshotFailedReason, r.Status.Error.Reason)
	assert.Contains(t, r.Status.Error.Message, forged.Name+`" is not what ApplicationRollback "back" takes`)
	w.requireState(after)
}

// forgeSafety creates a snapshot with the name of that which a rollback takes.
func (w *world) forgeSafety(r *v1alpha1.ApplicationRollback, filter *metav1.LabelSelector) *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	forged := &v1alpha1.ApplicationSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "rollback-" + string(r.UID)}, Spec: v1alpha1.ApplicationSnapshotSpec{
		SnapshotClassName: class, Source: v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "db"},
		PersistentVolumeClaimFilter: filter,
	}}
	w.Create(forged)
	return forged
}

// C22, S82: what is forbidden while the state before is put back is tried again: the application is down until then.
func TestRollback_revertsOnceItMay(t *testing.T) {
	t.Parallel()
	w := captured(t)
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
