package statefulapplication_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// S18, C64: a volume that would wait for its first consumer is restored although what uses it has no replicas in the
// snapshot.
func TestRestore_ofWhatHasNoReplicas(t *testing.T) {
	w := newWorld(t)
	w.run()
	refs := map[string]v1alpha1.NamespacedReference{}
	for _, claim := range []string{"data-shop-0", "shop-assets"} {
		refs[claim] = w.cut(claim, "before")
	}
	objects := w.stored()
	for _, o := range objects {
		if o.GetKind() == "StatefulSet" {
			require.NoError(t, unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas"))
		}
	}
	snapshot, _ := w.capturedObjects("before", objects, refs)
	one := clone("one", w.class(nil), snapshot)
	far := w.other()
	far.Create(one)
	hub.AwaitReady(far.World, one)
	assert.Equal(t, v1alpha1.RestoreCompleted, one.Status.Restore.Phase)
	claim := &corev1.PersistentVolumeClaim{}
	require.True(t, far.Exists(claim, "data-one-0"))
	assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	far.nothingStatic()

	set := &appsv1.StatefulSet{}
	require.True(t, far.Exists(set, "one"))
	hub.Change(far.World, set, func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To[int32](1) })
	far.awaitRunning("one-0")
	assert.Equal(t, "old\nlogo\n", far.sh("one-0", "cat data/file assets/logo"))
}
