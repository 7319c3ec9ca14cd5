package applicationrollback_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

const before, after = "a", "b"

// fleeting is the case of a StatefulSet that deletes its claims when it is scaled down.
const fleeting = "claims are deleted with their Pods"

// S78, S79, S80, S83, C22, C64, C65: data and objects are as in the snapshot, and held; then both are as
// before, and nothing is left of the rollback.
func TestRollback_thereAndBack(t *testing.T) {
	t.Parallel()
	for name, storageClass := range map[string]string{
		"immediate": volumes.ImmediateClass, "first consumer": volumes.FirstConsumerClass, fleeting: volumes.FirstConsumerClass,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.install(storageClass)
			if name == fleeting {
				hub.Change(w.World, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}, func(s *appsv1.StatefulSet) {
					s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
						WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
					}
				})
			}
			w.write(before)
			snapshot := w.snapshot("one")
			w.write(after)
			extra := w.settings()
			extra.Name, extra.Labels = "extra", labels()
			w.Create(extra)
			hub.Change(w.World, w.settings(), func(c *corev1.ConfigMap) { c.Data["more"] = "b" })
			old := w.claim("data-db-0").Spec.VolumeName

			r := w.rollback("back", "one")
			w.Create(r)
			w.awaitPhase(r, v1alpha1.RollbackCompleted)
			assert.Equal(t, `rolled back to ApplicationSnapshot "one"; the volumes of before are kept for 24h0m0s: set decision to Confirmed to delete them now, or to Undone to go back`+
				`; not in the snapshot and left as they are: ConfigMap "extra"`, conditions.GetMessage(r, v1alpha1.ReadyCondition))
			w.requireState(before)
			settings := w.settings()
			require.True(t, w.Exists(settings, "settings"))
			assert.NotContains(t, settings.Data, "more", "what the snapshot does not have is removed")
			by, held := hold.By(settings)
			assert.True(t, held)
			assert.Equal(t, client.ObjectKeyFromObject(r), by)
			ref := v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: w.Namespace, Name: "settings"}
			assert.NotNil(t, hold.Holds(r, ref))
			app := &v1alpha1.StatefulApplication{}
			require.True(t, w.Exists(app, "db"))
			require.NotNil(t, app.Status.Source)
			assert.Equal(t, v1alpha1.RestoredFrom{APIGroup: "apps.waybill.dev", Kind: "ApplicationSnapshot", Namespace: w.Namespace, Name: "one", UID: string(snapshot.UID)}, *app.Status.Source)
			restored := w.claim("data-db-0").Spec.VolumeName
			assert.NotEqual(t, old, restored)
			assert.True(t, w.volumeExists(old))
			w.requireNothingBeside()

			w.decide(r, v1alpha1.RollbackUndone)
			w.awaitPhase(r, v1alpha1.RollbackReverted)
			assert.True(t, conditions.IsReady(r))
			w.requireState(after)
			require.True(t, w.Exists(settings, "settings"))
			assert.Equal(t, "b", settings.Data["more"])
			_, held = hold.By(settings)
			assert.False(t, held)
			assert.Equal(t, old, w.claim("data-db-0").Spec.VolumeName)
			pv := &corev1.PersistentVolume{}
			require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Name: old}, pv))
			assert.Equal(t, corev1.PersistentVolumeReclaimDelete, pv.Spec.PersistentVolumeReclaimPolicy)
			assert.True(t, w.Eventually(func() bool { return !w.volumeExists(restored) }), "the restored volume is deleted")
			require.True(t, w.Exists(app, "db"))
			assert.Nil(t, app.Status.Source)
		})
	}
}

// C64: the volumes of before are deleted as soon as that is decided, and objects are held on until that
// is released. What is gone is not offered any more.
func TestRollback_isConfirmed(t *testing.T) {
	t.Parallel()
	w := captured(t)
	old := w.claim("data-db-0").Spec.VolumeName
	require.NoError(t, w.Client.Delete(t.Context(), w.settings()))
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before) // the settings are there again, too
	w.decide(r, v1alpha1.RollbackConfirmed)
	w.awaitPhase(r, v1alpha1.RollbackFinal)
	assert.True(t, w.Eventually(func() bool { return !w.volumeExists(old) }))
	assert.NotEmpty(t, r.Status.Held)
	w.requireState(before)

	hub.Change(w.World, r, func(r *v1alpha1.ApplicationRollback) { r.Spec.Hold = new(bool) })
	settings := w.settings()
	require.True(t, w.Eventually(func() bool {
		_, held := hold.By(settings)
		return w.Exists(settings, "settings") && !held
	}))
	w.decide(r, v1alpha1.RollbackUndone)
	assert.Contains(t, hub.AwaitReason(w.World, r, v1alpha1.UndoRefusedReason), "the volumes of before are deleted")
	w.requireState(before)
}

// C64, C65: a rollback whose objects were released is undone all the same: they are held again while it is, and what it
// has created is removed.
func TestRollback_isUndoneAfterItWasReleased(t *testing.T) {
	t.Parallel()
	w := captured(t)
	old := w.claim("data-db-0").Spec.VolumeName
	settings := w.settings()
	require.NoError(t, w.Client.Delete(t.Context(), settings))
	r := w.rollback("back", "one")
	r.Spec.Hold = new(bool)
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)
	require.Empty(t, r.Status.Held)

	release := w.holdPods()
	w.decide(r, v1alpha1.RollbackUndone)
	w.awaitPhase(r, v1alpha1.RollbackReverting)
	set := &appsv1.StatefulSet{}
	require.True(t, w.Eventually(func() bool { return w.Exists(set, "db") && *set.Spec.Replicas == 0 }))
	by, held := hold.By(set)
	assert.True(t, held)
	assert.Equal(t, client.ObjectKeyFromObject(r), by)
	release()
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	assert.Equal(t, after, w.sh("cat data/file"))
	assert.Equal(t, old, w.claim("data-db-0").Spec.VolumeName)
	assert.False(t, w.Exists(&corev1.ConfigMap{}, settings.Name), "it was not there before")
	require.True(t, w.Exists(set, "db"))
	_, held = hold.By(set)
	assert.False(t, held)
}

// holdPods keeps the application's Pod from ending until release is called.
func (w *world) holdPods() (release func()) {
	w.T.Helper()
	const finalizer = "example.com/test"
	pod := &corev1.Pod{}
	require.True(w.T, w.Exists(pod, "db-0"))
	hub.Change(w.World, pod, func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, finalizer) })
	return func() {
		w.T.Helper()
		hub.Change(w.World, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	}
}

// S80: a field that cannot be changed is no obstacle, and neither is a StatefulSet that was scaled since:
// claims that the snapshot does not have stay.
func TestRollback_replacesWhatCannotBeChanged(t *testing.T) {
	t.Parallel()
	w := captured(t)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}
	require.NoError(t, w.Client.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	w.AwaitGone(set, "db")
	other := w.database(volumes.ImmediateClass)
	other.Spec.ServiceName, *other.Spec.Replicas = "other", 2
	w.Create(other)
	w.awaitRunning("db-1")
	hub.AwaitReady(w.World, w.application())
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)
	require.True(t, w.Exists(set, "db"))
	assert.Equal(t, "db", set.Spec.ServiceName)
	assert.Equal(t, int32(1), *set.Spec.Replicas)
	assert.Equal(t, corev1.ClaimBound, w.claim("data-db-1").Status.Phase)
	assert.Equal(t, []v1alpha1.ObjectReference{{Kind: "PersistentVolumeClaim", Namespace: w.Namespace, Name: "data-db-1"}}, r.Status.Left)
	w.decide(r, v1alpha1.RollbackUndone)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
	w.awaitRunning("db-1")
	require.True(t, w.Exists(set, "db"))
	assert.Equal(t, "other", set.Spec.ServiceName)
}
