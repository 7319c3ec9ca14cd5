package volumes_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
)

func TestClaim_isBoundAtOnce(t *testing.T) {
	w := newWorld(t)
	claim := volumes.Claim(w.namespace, "data", volumes.ImmediateClass)
	w.create(claim)
	w.awaitBound(claim)

	pv := &corev1.PersistentVolume{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, pv))
	require.NotNil(t, pv.Spec.CSI)
	assert.Equal(t, csidriver.Name, pv.Spec.CSI.Driver)
	folder, err := w.Driver.Folder(pv.Spec.CSI.VolumeHandle)
	require.NoError(t, err)
	assert.DirExists(t, folder)

	require.NoError(t, w.Delete(t.Context(), claim))
	assert.Eventually(t, func() bool {
		_, err := w.Driver.Folder(pv.Spec.CSI.VolumeHandle)
		return err != nil
	}, limit, often, "the volume is deleted with its claim")
	assert.NoDirExists(t, folder)
}

func TestClaim_waitsForItsFirstConsumer(t *testing.T) {
	w := newWorld(t)
	late, other := volumes.Claim(w.namespace, "late", volumes.FirstConsumerClass), volumes.Claim(w.namespace, "other", volumes.ImmediateClass)
	w.create(late, other)
	w.awaitBound(other) // later than the first would be, were it not to wait
	w.await(late, func() bool { return true }, "there")
	assert.Equal(t, corev1.ClaimPending, late.Status.Phase)
	assert.Empty(t, late.Spec.VolumeName)

	w.run("consumer", "late")
	w.awaitBound(late)
	pv := &corev1.PersistentVolume{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Name: late.Spec.VolumeName}, pv))
	assert.NotNil(t, pv.Spec.NodeAffinity, "it can be used on one Node only")
}
