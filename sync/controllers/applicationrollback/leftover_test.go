package applicationrollback_test

import (
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
)

// S79, S82: a claim beside the old one that Kubernetes has bound to a volume that was there before is not put in its
// place: the application would run on other data.
func TestRollback_takesNoVolumeThatWasThereBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kind := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Provisioner: csidriver.Name}
	require.NoError(t, w.Client.Create(t.Context(), kind))
	w.install(kind.Name)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	old := w.claim("data-db-0").Spec.VolumeName
	leftover := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": csidriver.Name}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: kind.Name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: t.TempDir()}},
		},
	}
	require.NoError(t, w.Client.Create(t.Context(), leftover))
	require.True(t, w.Eventually(func() bool {
		// Timestamps have seconds: it is older than what is created from now on.
		return w.volume(leftover.Name).Status.Phase == corev1.VolumeAvailable && time.Now().Unix() > leftover.CreationTimestamp.Unix()
	}))

	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	assert.Contains(t, r.Status.Error.Message, `"`+leftover.Name+`" is forbidden: it was not provisioned for PersistentVolumeClaim`)
	w.requireState(after)
	assert.Equal(t, old, w.claim("data-db-0").Spec.VolumeName)
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, w.volume(leftover.Name).Spec.PersistentVolumeReclaimPolicy, "it is not deleted either")
	w.requireNothingBeside()
	require.NoError(t, client.IgnoreNotFound(w.Client.Delete(t.Context(), leftover)))
}
