package applicationrollback_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
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

// resized does what a resizer and a kubelet do, and leaves the claim with what it has of conditions.
func (w *world) resized(claim, size string, has ...corev1.PersistentVolumeClaimConditionType) {
	w.T.Helper()
	c := w.claim(claim)
	before := c.DeepCopy()
	c.Status.Capacity[corev1.ResourceStorage] = resource.MustParse(size)
	c.Status.Conditions = nil
	for _, kind := range has {
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
		said := conditions.GetMessage(r, v1alpha1.ReadyCondition)
		assert.Contains(t, said, waits, reason)
		usedFirst := strings.Contains(said, "its file system is made larger when a Pod uses it")
		assert.Equal(t, condition == corev1.PersistentVolumeClaimFileSystemResizePending, usedFirst, reason)
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
	release := w.busy()
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

// creating is a client that calls before at each ApplicationSnapshot that it creates.
type creating struct {
	some

	before func()
}

func (c *creating) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if _, is := obj.(*v1alpha1.ApplicationSnapshot); is {
		c.before()
	}
	return c.some.Create(ctx, obj, opts...)
}

// C22, C64: a resize that began too late for the rollback to wait for it is asked for again when the state before is put
// back: the volume is too small as yet for a claim that is created with that size. The volume of the snapshot is as large
// as its own claim asks for, which is less.
func TestRollback_asksAgainForAResize(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t)
	aparts.Store(w.Namespace, true)
	var once sync.Once
	w.start(nil, func(c client.Client) client.Client {
		return &creating{some{c, func(ns string) bool { return ns == w.Namespace }}, func() {
			once.Do(func() {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "data-db-0"}}
				size := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"storage":"4Mi"}}}}`))
				assert.NoError(t, w.Client.Patch(t.Context(), claim, size))
			})
		}}
	})
	w.install(volumes.ImmediateClass)
	w.write(before)
	size, old := w.asks("data-db-0"), w.claim("data-db-0").Spec.VolumeName
	w.snapshot("one")
	w.write(after)
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)
	assert.Equal(t, size, w.asks("data-db-0"))

	w.decide(r, v1alpha1.RollbackUndone)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
	assert.Equal(t, old, w.claim("data-db-0").Spec.VolumeName)
	assert.Equal(t, "4Mi", w.asks("data-db-0"))
}
