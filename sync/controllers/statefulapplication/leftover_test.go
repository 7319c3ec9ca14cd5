package statefulapplication_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// S99: a claim that Kubernetes has bound to a volume that was there before does not have the data of the snapshot: the
// restore does not go on with it, and does once the claim was deleted.
func TestRestore_takesNoVolumeThatWasThereBefore(t *testing.T) {
	w := newWorld(t)
	w.run()
	refs := map[string]v1alpha1.NamespacedReference{"shop-cache": w.cut("shop-assets", "before")}
	leftover := w.leftover()
	snapshot, _ := w.captured("before", strings.ReplaceAll(plain, volumes.FirstConsumerClass, leftover.Spec.StorageClassName), refs)
	a := clone("one", w.class(nil), snapshot)
	w.Create(a)

	message := hub.AwaitReason(w.World, a, v1alpha1.VolumeNotRestoredReason)
	assert.Contains(t, message, "PersistentVolume "+leftover.Name+" of PersistentVolumeClaim one-cache was not made from the snapshot")
	assert.Equal(t, v1alpha1.RestoreClaims, a.Status.Restore.Phase)
	assert.False(t, w.Exists(&v1alpha1.Application{}, "one"))

	claim := &corev1.PersistentVolumeClaim{}
	require.True(t, w.Exists(claim, "one-cache"))
	require.NoError(t, w.Client.Delete(t.Context(), claim))
	hub.AwaitReady(w.World, a)
	require.True(t, w.Exists(claim, "one-cache"))
	assert.NotEqual(t, leftover.Name, claim.Spec.VolumeName)
	w.Create(volumes.Pod(w.Namespace, "reader", "one-cache"))
	w.awaitRunning("reader")
	assert.Equal(t, "logo\n", w.sh("reader", "cat one-cache/logo"))
}

// leftover creates a StorageClass of the test, and a volume of it that is Available, as if it had been provisioned for
// another claim.
func (w *world) leftover() *corev1.PersistentVolume {
	w.T.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Provisioner: csidriver.Name}
	require.NoError(w.T, w.Client.Create(w.T.Context(), class))
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": csidriver.Name}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class.Name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: w.T.TempDir()}},
		},
	}
	require.NoError(w.T, w.Client.Create(w.T.Context(), pv))
	require.True(w.T, w.Eventually(func() bool {
		// Timestamps have seconds: it is older than what is created from now on.
		return w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(pv), pv) == nil && pv.Status.Phase == corev1.VolumeAvailable &&
			time.Now().Unix() > pv.CreationTimestamp.Unix()
	}))
	return pv
}
