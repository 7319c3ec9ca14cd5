package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// enlarge asks for a larger volume, which is not provided until resized is called.
func (w *world) enlarge(claim, size string) {
	w.T.Helper()
	hub.Change(w.World, w.claim(claim), func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	})
}

// resized does what a resizer and a kubelet do, and leaves the claim with these conditions.
func (w *world) resized(claim, size string, conditions ...corev1.PersistentVolumeClaimConditionType) {
	w.T.Helper()
	c := w.claim(claim)
	before := c.DeepCopy()
	c.Status.Capacity[corev1.ResourceStorage] = resource.MustParse(size)
	c.Status.Conditions = nil
	for _, kind := range conditions {
		c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), c, client.MergeFrom(before)))
}

func (w *world) asks(claim string) string {
	w.T.Helper()
	size := w.claim(claim).Spec.Resources.Requests[corev1.ResourceStorage]
	return size.String()
}

// C22, S78: a claim that is being resized, as its size or a condition says, has a rollback wait before it takes a
// snapshot or touches anything. A snapshot is taken all the same, and can be gone back to: the volume is as large as
// the claim asks for.
func TestRollback_waitsForAResize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.enlarge("data-db-0", "4Mi")
	w.snapshot("one")
	w.write(after)

	r := w.rollback("back", "one")
	w.Create(r)
	const waits = `waiting for PersistentVolumeClaim "data-db-0" to be resized`
	assert.Contains(t, hub.AwaitReason(w.World, r, v1alpha1.RollbackWaitsReason), waits)
	for reason, condition := range map[string]corev1.PersistentVolumeClaimConditionType{
		"the driver makes the volume larger": corev1.PersistentVolumeClaimResizing,
		"the node has yet to":                corev1.PersistentVolumeClaimFileSystemResizePending,
	} {
		w.resized("data-db-0", "4Mi", condition)
		r = hub.Reconcile(w.World, r)
		assert.Equal(t, v1alpha1.RollbackPending, r.Status.Phase, reason)
		assert.Contains(t, r.Status.Conditions[0].Message, waits, reason)
	}
	assert.Empty(t, r.Status.SafetySnapshot)
	w.requireState(after)

	w.resized("data-db-0", "4Mi")
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)
	assert.Equal(t, "4Mi", w.asks("data-db-0"))
}

// C64: what asks for a larger volume in the middle of a rollback is overruled by the claim of the snapshot, and undoing
// the rollback gives the volume of before back.
func TestRollback_overrulesAResizeInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	size := w.asks("data-db-0")
	w.snapshot("one")
	w.write(after)
	release := w.Driver.Inject(csidriver.Fault{Method: "CreateVolume", Namespace: w.Namespace, Code: 14, Message: "busy"})
	defer release()
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackRestoring)
	w.enlarge("data-db-0", "4Mi")
	release()
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)
	assert.Equal(t, size, w.asks("data-db-0"))
	w.decide(r, v1alpha1.RollbackUndone)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
}
