package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/rollback"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// C65: a rollback is undone also when the claim with the restored volume was deleted by hand, and its StatefulApplication.
func TestRollback_isUndoneWithoutItsClaim(t *testing.T) {
	t.Parallel()
	w := captured(t)
	r := w.rollback("back", "one")
	r.Spec.Hold = ptr.To(false)
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}
	hub.Change(w.World, set, func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To(int32(0)) })
	w.AwaitGone(&corev1.Pod{}, "db-0")
	claim := w.claim("data-db-0")
	app := &v1alpha1.StatefulApplication{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}
	for _, o := range []client.Object{claim, app} {
		require.NoError(t, w.Client.Delete(t.Context(), o))
		w.AwaitGone(o, o.GetName())
	}
	w.decide(r, v1alpha1.RollbackUndone)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
}

// S79: a volume that was restored, and reserved for a claim that was not bound to it any more, is deleted: the next claim of
// that name would be bound to it otherwise.
func TestVolumes_discardOneThatIsReserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.boundVolume("data")
	v := &rollback.Volumes{Client: w.Client, Namespace: w.Namespace}
	require.NoError(t, v.SetPolicy(t.Context(), name, corev1.PersistentVolumeReclaimRetain))
	claim := w.claim("data")
	require.NoError(t, w.Client.Delete(t.Context(), claim))
	w.AwaitGone(claim, "data")
	hub.Change(w.World, w.volume(name), func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: w.Namespace, Name: "data"}
	})
	waits, err := v.Discard(t.Context(), volumes.Claim(w.Namespace, "beside", volumes.ImmediateClass), name)
	require.NoError(t, err)
	require.Empty(t, waits)
	require.True(t, w.Eventually(func() bool { return !w.volumeExists(name) }))
}
