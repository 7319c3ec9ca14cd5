package applicationrollback_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// C22, C64: the process is killed after every single thing that it changes, and never hears whether it
// was changed; the next one goes on from there.
func TestRollback_isNotStoppedByKillingTheProcess(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t)
	aparts.Store(w.Namespace, true)
	w.install(volumes.FirstConsumerClass)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	old := w.claim("data-db-0").Spec.VolumeName

	r := w.rollback("back", "one")
	w.Create(r)
	did := w.killUntil(r, v1alpha1.RollbackCompleted)
	t.Log(len(did), "changes until the rollback was completed:", did)
	assert.Greater(t, len(did), 20)
	w.requireState(before)
	assert.True(t, w.volumeExists(old))
	w.requireNothingBeside()

	restored := w.claim("data-db-0").Spec.VolumeName
	w.decide(r, v1alpha1.RollbackUndone)
	did = w.killUntil(r, v1alpha1.RollbackReverted)
	t.Log(len(did), "changes until it was undone:", did)
	assert.Greater(t, len(did), 10)
	w.requireState(after)
	assert.Equal(t, old, w.claim("data-db-0").Spec.VolumeName)
	assert.True(t, w.Eventually(func() bool { return !w.volumeExists(restored) }))
	assert.Equal(t, 1, len(slices.Compact(w.phases(r))), "it rests")
}

// killUntil runs one process after the other until the rollback is at a phase, and returns what each did
// before it was killed.
func (w *world) killUntil(r *v1alpha1.ApplicationRollback, phase v1alpha1.RollbackPhase) (did []string) {
	w.T.Helper()
	for len(did) < 200 {
		did = append(did, w.killOnce(r)...)
		if r.Status.Phase == phase {
			return did
		}
		require.NotContains(w.T, []v1alpha1.RollbackPhase{v1alpha1.RollbackFailed}, r.Status.Phase, "%+v after %v", r.Status, did)
	}
	require.Fail(w.T, "it never ends", "%v", did)
	return nil
}

// killOnce runs a process until it is killed, and returns what it did before.
func (w *world) killOnce(r *v1alpha1.ApplicationRollback) (did []string) {
	w.T.Helper()
	l := &life{ended: make(chan struct{})}
	process := w.start(nil, func(c client.Client) client.Client {
		return &mortal{some{c, func(ns string) bool { return ns == w.Namespace }}, l}
	})
	select {
	case <-l.ended:
	case <-time.After(hub.Limit):
		require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(r), r))
		require.Fail(w.T, "nothing happens", "%+v", r.Status)
	}
	process.Stop()
	require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(r), r))
	return l.did
}

// phases returns the phase of a rollback as it is now and after a moment in which a process ran.
func (w *world) phases(r *v1alpha1.ApplicationRollback) []v1alpha1.RollbackPhase {
	w.T.Helper()
	was := r.Status.Phase
	w.alone(nil)
	hub.Reconcile(w.World, r)
	return []v1alpha1.RollbackPhase{was, r.Status.Phase}
}
