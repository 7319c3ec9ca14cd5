package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// C22, C63: what does not run any more, so that no hook can, is what is rolled back; the snapshot of the state before
// says how consistent it is.
func TestRollback_ofWhatHooksCannotQuiesce(t *testing.T) {
	t.Parallel()
	w := captured(t)
	hook := v1alpha1.HookSpec{Name: "lock", ActionName: "lock", PodFilter: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "leader"}}}
	w.Create(&v1alpha1.ApplicationSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Snapshotter: v1alpha1.DataHandler, PreHooks: []v1alpha1.HookSpec{hook}, PostHooks: []v1alpha1.HookSpec{hook},
	})
	r := w.rollback("back", "one")
	r.Spec.SnapshotClassName = w.Namespace
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)
	safety := &v1alpha1.ApplicationSnapshot{}
	require.True(t, w.Exists(safety, r.Status.SafetySnapshot))
	assert.Equal(t, v1alpha1.ConsistencyPerVolume, safety.Status.Consistency)
}
