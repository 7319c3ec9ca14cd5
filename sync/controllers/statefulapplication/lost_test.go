package statefulapplication_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// S97, S99: a claim that is deleted before the restore is complete is created again from the snapshot, and one that
// others have created in its place, without the data, is not taken for it.
func TestRestore_createsClaimsAgain(t *testing.T) {
	w := newWorld(t)
	w.run()
	refs := map[string]v1alpha1.NamespacedReference{"shop-cache": w.cut("shop-assets", "before")}
	snapshot, _ := w.captured("before", plain, refs)
	release := w.volumes.Driver.Inject(csidriver.Fault{
		Method: "CreateVolume", Namespace: w.Namespace, Name: "one-cache", Code: codes.Unavailable, Message: "busy",
	})
	defer release()
	a := clone("one", w.class(nil), snapshot)
	w.Create(a)
	hub.Await(w.World, a, "it does not wait for the claim", func(a *v1alpha1.StatefulApplication) bool {
		return a.Status.Restore != nil && a.Status.Restore.Phase == v1alpha1.RestoreObjects && a.Status.Restore.Created == a.Status.Restore.Objects
	})

	second := w.awaitRestored("one-cache", w.deleteClaim("one-cache"))
	w.restart(func() {
		require.Equal(t, second, w.deleteClaim("one-cache"))
		w.AwaitGone(&corev1.PersistentVolumeClaim{}, "one-cache")
		w.Create(volumes.Claim(w.Namespace, "one-cache", volumes.FirstConsumerClass))
	})
	hub.AwaitReason(w.World, a, v1alpha1.RestoreRefusedReason)
	assert.Equal(t, v1alpha1.RestoreClaims, a.Status.Restore.Phase)
	require.Len(t, a.Status.Restore.Problems, 1)
	assert.Equal(t, "one-cache", a.Status.Restore.Problems[0].Name)

	w.awaitRestored("one-cache", w.deleteClaim("one-cache"))
	release()
	w.Create(volumes.Pod(w.Namespace, "reader", "one-cache"))
	hub.AwaitReady(w.World, a)
	w.awaitRunning("reader")
	assert.Equal(t, "logo\n", w.sh("reader", "cat one-cache/logo"))
}

// deleteClaim deletes a claim, and returns its UID.
func (w *world) deleteClaim(name string) types.UID {
	w.T.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	require.True(w.T, w.Exists(claim, name))
	require.NoError(w.T, w.Client.Delete(w.T.Context(), claim))
	return claim.UID
}

// awaitRestored waits until a restore has created another claim than the one with a UID, and returns that of it.
func (w *world) awaitRestored(name string, other types.UID) types.UID {
	w.T.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	require.True(w.T, w.Eventually(func() bool {
		return w.Exists(claim, name) && claim.UID != other && claim.Annotations[v1alpha1.RestoredByAnnotation] != ""
	}), "the claim is not created again: %+v", claim.ObjectMeta)
	return claim.UID
}
