package statefulapplication_test

import (
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// S14, S18, S96, S97, S98, S99, S100, S101, S102, C16, C24: clones in the same namespace and in another one have the data of the
// snapshot, and nothing in common.
func TestRestore_clonesAreIndependent(t *testing.T) {
	w := newWorld(t)
	class := w.class(nil)
	w.run()
	snapshot := w.snapshot("before")
	w.sh("shop-0", "echo new >data/file")

	one, two := clone("one", class, snapshot), clone("two", class, snapshot)
	two.Spec.ApplicationName = "two"
	w.Create(one)
	far := w.other()
	far.Create(two)

	hub.AwaitReady(w.World, one)
	hub.AwaitReady(far.World, two)
	w.awaitRunning("one-0")
	far.awaitRunning("two-0")
	assert.Equal(t, "old\nlogo\n", w.sh("one-0", "cat data/file assets/logo"))
	assert.Equal(t, "old\nlogo\n", far.sh("two-0", "cat data/file assets/logo"))
	w.sh("one-0", "echo one >data/file")
	assert.Equal(t, "old\n", far.sh("two-0", "cat data/file"))
	assert.Equal(t, "new\n", w.sh("shop-0", "cat data/file"))

	assert.Equal(t, &v1alpha1.RestoredFrom{
		APIGroup: v1alpha1.Group, Kind: "ApplicationSnapshot", Namespace: w.Namespace, Name: "before", UID: string(snapshot.UID),
	}, two.Status.Source)
	assert.Equal(t, v1alpha1.RestoreCompleted, two.Status.Restore.Phase)
	assert.EqualValues(t, 6, two.Status.Restore.Created)
	assert.Len(t, two.Status.Restore.Inventory, 6)
	assert.Positive(t, two.Status.Restore.Rules[0].Hits)
	assert.True(t, far.Exists(&v1alpha1.Application{}, "two"))
	far.nothingStatic()

	secret := &corev1.Secret{}
	require.True(t, far.Exists(secret, "two-keys"))
	assert.Equal(t, "s3cr3t", string(secret.Data["key"]))

	require.NoError(t, far.Client.Delete(t.Context(), two))
	far.AwaitGone(&v1alpha1.StatefulApplication{}, "two")
	assert.True(t, far.Exists(&v1alpha1.Application{}, "two"), "a restored application belongs to its users alone")
	assert.True(t, far.Exists(&corev1.PersistentVolumeClaim{}, "data-two-0"))
}

// S33, S34: the class of a claim is another one in this cluster, and the volume is as large as the
// snapshot needs.
func TestRestore_mapsStorageClasses(t *testing.T) {
	w := newWorld(t)
	w.Create(volumes.Claim(w.Namespace, "shop-cache", volumes.ImmediateClass))
	require.True(t, w.Eventually(func() bool {
		claim := &corev1.PersistentVolumeClaim{}
		return w.Exists(claim, "shop-cache") && claim.Status.Phase == corev1.ClaimBound
	}))
	refs := map[string]v1alpha1.NamespacedReference{"shop-cache": w.cut("shop-cache", "before")}
	elsewhere := strings.NewReplacer("files-first-consumer", "gold", "storage: 1Mi", "storage: 4Ki").Replace(plain)
	snapshot, _ := w.captured("before", elsewhere, refs)
	unmapped, mapped := clone("unmapped", w.class(nil), snapshot), clone("mapped", w.named("mapped", map[string]string{"gold": volumes.ImmediateClass}), snapshot)
	wrong := clone("wrong", w.named("wrong", map[string]string{"gold": "standard"}), snapshot)
	for _, a := range []*v1alpha1.StatefulApplication{unmapped, mapped, wrong} {
		w.Create(a)
	}

	assert.Contains(t, hub.AwaitReason(w.World, unmapped, v1alpha1.StorageClassNotFoundReason), `StorageClass "gold" does not exist in this cluster`)
	assert.Contains(t, hub.AwaitReason(w.World, wrong, v1alpha1.StorageClassNotFoundReason), "which cannot read snapshots of driver")
	hub.AwaitReady(w.World, mapped)
	claim := &corev1.PersistentVolumeClaim{}
	require.True(t, w.Exists(claim, "mapped-cache"))
	assert.Equal(t, volumes.ImmediateClass, *claim.Spec.StorageClassName)
	assert.Equal(t, "1Mi", claim.Spec.Resources.Requests.Storage().String())
	assert.Equal(t, corev1.ClaimBound, claim.Status.Phase, "it was waited for")
}

// nothingStatic checks that only the user's own VolumeSnapshots are left, and no content.
func (w *world) nothingStatic() {
	w.T.Helper()
	assert.True(w.T, w.Eventually(func() bool {
		snapshots, contents := &snapshotv1.VolumeSnapshotList{}, &snapshotv1.VolumeSnapshotContentList{}
		if w.Client.List(w.T.Context(), snapshots, client.InNamespace(w.Namespace)) != nil || w.Client.List(w.T.Context(), contents) != nil {
			return false
		}
		for _, c := range contents.Items {
			if c.Spec.VolumeSnapshotRef.Namespace == w.Namespace {
				return false
			}
		}
		return len(snapshots.Items) == 0
	}), "static VolumeSnapshots are left")
}
