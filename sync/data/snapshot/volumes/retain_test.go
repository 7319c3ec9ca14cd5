package volumes_test

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/volumes"
	"waybill.dev/waybill/test/env"
	driver "waybill.dev/waybill/test/env/volumes"
)

func TestMain(m *testing.M) { env.Main(m) }

// S75: only the VolumeSnapshotContent that is bound to a VolumeSnapshot is retained for it, whichever that names.
func TestRetain_onlyWhatIsBound(t *testing.T) {
	c := env.Shared(t, env.Options{Name: "cluster", NoControllers: true, CRDs: []string{driver.CRDs(t)}})
	direct, err := volumes.NewClient(c.RESTConfig(), nil)
	require.NoError(t, err)
	namespace := c.Namespace(t)
	create := func(name string, bound func(types.UID) types.UID) {
		snapshot := &snapshotv1.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: ptr.To(namespace + "-" + name)}},
		}
		require.NoError(t, direct.Create(t.Context(), snapshot))
		require.NoError(t, direct.Create(t.Context(), &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
			Spec: snapshotv1.VolumeSnapshotContentSpec{
				VolumeSnapshotRef: corev1.ObjectReference{Namespace: namespace, Name: name, UID: bound(snapshot.UID)},
				DeletionPolicy:    snapshotv1.VolumeSnapshotContentDelete, Driver: "csi.example.com",
				Source: snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: ptr.To("1")},
			},
		}))
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr.To(namespace + "-" + name)}
		require.NoError(t, direct.Status().Update(t.Context(), snapshot))
	}
	create("mine", func(own types.UID) types.UID { return own })
	create("other", func(types.UID) types.UID { return "another" })
	create("unbound", func(types.UID) types.UID { return "" })
	refs := map[string]v1alpha1.NamespacedReference{}
	for _, name := range []string{"mine", "other", "unbound", "gone"} {
		refs[name] = v1alpha1.NamespacedReference{Namespace: namespace, Name: name}
	}
	require.NoError(t, (&volumes.Volumes{Client: direct}).Retain(t.Context(), refs))
	for name, want := range map[string]snapshotv1.DeletionPolicy{
		"mine": snapshotv1.VolumeSnapshotContentRetain, "other": snapshotv1.VolumeSnapshotContentDelete, "unbound": snapshotv1.VolumeSnapshotContentDelete,
	} {
		content := &snapshotv1.VolumeSnapshotContent{}
		require.NoError(t, direct.Get(t.Context(), client.ObjectKey{Name: namespace + "-" + name}, content))
		assert.Equal(t, want, content.Spec.DeletionPolicy, name)
	}
}
