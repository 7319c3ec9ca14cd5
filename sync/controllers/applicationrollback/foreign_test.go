package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/rollback"
	"waybill.dev/waybill/test/env/volumes"
)

// S79, C64: a claim that names the volume of another namespace, and is never bound to it, is no claim of the volume for
// a rollback: the volume keeps its reclaim policy, and goes with its own claim.
func TestRollback_takesNoVolumeThatAClaimOnlyNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	theirs := w.elsewhere()
	victim := theirs.boundVolume("data")
	w.removeDatabase()
	naming := volumes.Claim(w.Namespace, "data-db-0", volumes.ImmediateClass)
	naming.Spec.VolumeName = victim
	w.Create(naming)

	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)
	require.Len(t, r.Status.Volumes, 1)
	assert.Empty(t, r.Status.Volumes[0].Before)
	assert.NotEqual(t, victim, w.claim("data-db-0").Spec.VolumeName)
	assert.Equal(t, corev1.PersistentVolumeReclaimDelete, w.volume(victim).Spec.PersistentVolumeReclaimPolicy)
	require.NoError(t, w.Client.Delete(t.Context(), theirs.claim("data")))
	assert.True(t, w.Eventually(func() bool { return !w.volumeExists(victim) }), "it is deleted with its claim")

	w.decide(r, v1alpha1.RollbackUndone)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.AwaitGone(&corev1.PersistentVolumeClaim{}, "data-db-0")
}

// S79, C64: whatever a status says, nothing is done to a volume of another namespace, whether its claim is there or not,
// and none is dropped that is not the one that was kept for the claim.
func TestRollback_changesNoVolumeOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs := w.elsewhere()
	name := theirs.boundVolume("data")
	of := func(namespace string) *rollback.Volumes {
		return &rollback.Volumes{Client: w.Client, Namespace: namespace}
	}
	require.NoError(t, of(theirs.Namespace).SetPolicy(t.Context(), name, corev1.PersistentVolumeReclaimRetain))
	wanted := volumes.Claim(w.Namespace, "mine", volumes.ImmediateClass)
	acts := map[string]struct {
		act     func(*rollback.Volumes) error
		refused bool
	}{
		"retain": {func(v *rollback.Volumes) error {
			return v.SetPolicy(t.Context(), name, corev1.PersistentVolumeReclaimRetain)
		}, true},
		"delete": {func(v *rollback.Volumes) error {
			return v.SetPolicy(t.Context(), name, corev1.PersistentVolumeReclaimDelete)
		}, true},
		"read":    {func(v *rollback.Volumes) error { _, err := v.Policy(t.Context(), name); return err }, true},
		"reserve": {func(v *rollback.Volumes) error { _, err := v.Swap(t.Context(), wanted, name); return err }, true},
		"keep":    {func(v *rollback.Volumes) error { _, err := v.Swap(t.Context(), wanted, "gone", name); return err }, true},
		"drop": {func(v *rollback.Volumes) error {
			return v.Release(t.Context(), "data", name, corev1.PersistentVolumeReclaimDelete)
		}, false},
		"discard": {func(v *rollback.Volumes) error {
			_, err := v.Discard(t.Context(), wanted, name)
			return err
		}, false},
	}
	check := func(reason string) {
		spec := w.volume(name).Spec
		for what, a := range acts {
			err := a.act(of(w.Namespace))
			assert.Equal(t, a.refused, err != nil, "%s %s: %v", what, reason, err)
			assert.Equal(t, spec, w.volume(name).Spec, "%s %s", what, reason)
		}
	}
	check("while its claim is there")
	require.NoError(t, of(theirs.Namespace).Release(t.Context(), "data", name, corev1.PersistentVolumeReclaimDelete))
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, w.volume(name).Spec.PersistentVolumeReclaimPolicy, "it is bound")
	claim := theirs.claim("data")
	require.NoError(t, w.Client.Delete(t.Context(), claim))
	theirs.AwaitGone(claim, "data")
	require.True(t, w.Eventually(func() bool { return w.volume(name).Status.Phase == corev1.VolumeReleased }))
	check("when its claim is gone")
	require.NoError(t, of(theirs.Namespace).Release(t.Context(), "other", name, corev1.PersistentVolumeReclaimDelete))
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, w.volume(name).Spec.PersistentVolumeReclaimPolicy, "it is not that of this claim")
	require.NoError(t, of(theirs.Namespace).Release(t.Context(), "data", name, corev1.PersistentVolumeReclaimDelete))
	assert.True(t, w.Eventually(func() bool { return !w.volumeExists(name) }))
}

// boundVolume creates a claim, and returns its volume once it is bound.
func (w *world) boundVolume(claim string) string {
	w.T.Helper()
	w.Create(volumes.Claim(w.Namespace, claim, volumes.ImmediateClass))
	require.True(w.T, w.Eventually(func() bool { return w.claim(claim).Status.Phase == corev1.ClaimBound }))
	return w.claim(claim).Spec.VolumeName
}

// volume returns a PersistentVolume, which exists.
func (w *world) volume(name string) *corev1.PersistentVolume {
	w.T.Helper()
	pv := &corev1.PersistentVolume{}
	require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKey{Name: name}, pv))
	return pv
}

// removeDatabase deletes the StatefulSet of the application, and the claim with its volume.
func (w *world) removeDatabase() {
	w.T.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}
	claim := w.claim("data-db-0")
	for _, o := range []client.Object{set, claim} {
		require.NoError(w.T, w.Client.Delete(w.T.Context(), o))
		w.AwaitGone(o, o.GetName())
	}
}
