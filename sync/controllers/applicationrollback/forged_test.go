package applicationrollback_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	snapshots "waybill.dev/waybill/sync/data/snapshot/volumes"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// S79, S82: a VolumeSnapshot that another client has created in place of the one that was taken is not what the
// application is rolled back to.
func TestRollback_takesNoOtherVolumeSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	direct, err := snapshots.NewClient(w.Cluster.RESTConfig(), w.Client.RESTMapper())
	require.NoError(t, err)
	w.install(volumes.ImmediateClass)
	w.write(before)
	taken := w.snapshot("one")
	w.write(after)
	content := &v1alpha1.ApplicationSnapshotContent{}
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Name: taken.Status.BoundSnapshotContentName}, content))
	name := content.Spec.VolumeSnapshotRefs["data-db-0"].Name
	cut := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	require.NoError(t, direct.Delete(t.Context(), cut))
	forged := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To("data-db-0")}},
	}
	require.True(t, w.Eventually(func() bool { return direct.Create(t.Context(), forged.DeepCopy()) == nil }))
	require.True(t, w.Eventually(func() bool {
		return direct.Get(t.Context(), client.ObjectKeyFromObject(forged), forged) == nil && forged.Status != nil && ptr.Deref(forged.Status.ReadyToUse, false)
	}))

	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackFailed)
	assert.Equal(t, `source: VolumeSnapshot "`+name+`" was deleted and created again: roll back to another snapshot`, r.Status.Error.Message)
	w.requireState(after)
}

// S79, S82: a claim that another client has created with the name and the mark of the one beside, but not from the
// snapshot, is not used, and stays with its volume.
func TestRollback_takesNoOtherClaimForTheOneBeside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kind := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Provisioner: csidriver.Name, ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimRetain),
	}
	require.NoError(t, w.Client.Create(t.Context(), kind))
	w.install(kind.Name)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	release := w.keepWaiting()
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackPending)
	digest := sha256.Sum256([]byte(string(r.UID) + "/data-db-0"))
	forged := volumes.Claim(w.Namespace, "data-db-0-restore-"+hex.EncodeToString(digest[:])[:10], kind.Name)
	forged.Annotations = map[string]string{v1alpha1.RestoredByAnnotation: string(r.UID)}
	w.Create(forged)
	require.True(t, w.Eventually(func() bool { return w.claim(forged.Name).Status.Phase == corev1.ClaimBound }))
	release()
	hub.Reconcile(w.World, r)

	w.awaitPhase(r, v1alpha1.RollbackReverted)
	assert.Contains(t, r.Status.Error.Message, `"`+forged.Name+`" is forbidden: it was created or deleted by another client`)
	w.requireState(after)
	claim := w.claim(forged.Name)
	assert.Nil(t, claim.DeletionTimestamp)
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, w.volume(claim.Spec.VolumeName).Spec.PersistentVolumeReclaimPolicy)
}

// keepWaiting has rollbacks of the application wait for another one, which no controller reconciles, until release is
// called.
func (w *world) keepWaiting() (release func()) {
	w.T.Helper()
	w.Create(&v1alpha1.ApplicationSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Snapshotter: "example.com/other"})
	first := w.rollback("first", "one")
	first.Spec.SnapshotClassName = w.Namespace
	w.Create(first)
	enter := func(phase v1alpha1.RollbackPhase) {
		was := first.DeepCopy()
		first.Status.Phase = phase
		require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), first, client.MergeFrom(was)))
	}
	enter(v1alpha1.RollbackChecking)
	return func() { enter(v1alpha1.RollbackFinal) }
}
