package applicationsnapshot_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// S87, C63: an application is not quiesced while those before it wait for their VolumeSnapshots; but one whose hook
// hangs does not keep the others waiting for long.
func TestSnapshot_waitsForItsTurn(t *testing.T) {
	for name, test := range map[string]struct {
		turn  time.Duration
		waits bool
	}{
		"until another application is released": {turn: time.Hour, waits: true},
		"no longer than a turn":                 {turn: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := newWorld(t), newWorld(t)
			for _, w := range []*world{first, second} {
				w.application("data")
			}
			first.action("lock", "echo lock >>data/log; while ! test -e data/go; do sleep 0.1; done", "")
			hub.Change(first.World, &v1alpha1.HookAction{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: "lock"}},
				func(a *v1alpha1.HookAction) { a.Spec.Timeout.Duration = hub.Limit })
			first.restart(func() { shared.parallel, shared.turn = 1, test.turn })
			defer first.restart(func() { shared.parallel, shared.turn = most, 0 })

			hangs := first.take()
			require.True(t, first.Eventually(func() bool { return first.sh("db-0", "cat data/log || true") == "lock" }))
			other := second.take()
			if test.waits {
				hub.Await(second.World, other, "does not wait", func(s *v1alpha1.ApplicationSnapshot) bool {
					return conditions.GetMessage(s, v1alpha1.ReadyCondition) == "waiting for ApplicationSnapshots of other applications that are being taken"
				})
				assert.Equal(t, v1alpha1.SnapshotPending, other.Status.Phase)
				assert.Empty(t, other.Status.Volumes, "what belongs to the application is found out when it is its turn")
			} else {
				hub.AwaitReady(second.World, other)
				require.True(t, first.Exists(hangs, hangs.Name))
				assert.Equal(t, v1alpha1.SnapshotQuiescing, hangs.Status.Phase)
			}
			first.sh("db-0", "touch data/go")
			hub.AwaitReady(first.World, hangs)
			hub.AwaitReady(second.World, other)
			assert.Equal(t, "lock unlock", second.sh("db-0", "cat data/log"))
		})
	}
}

// C63: an application whose Pods do not end keeps no other one scaled to zero.
func TestSnapshot_isNotKeptDownByOthers(t *testing.T) {
	hangs, other := newWorld(t), newWorld(t)
	for _, w := range []*world{hangs, other} {
		w.application("data")
		w.class.PreHooks, w.class.PostHooks, w.class.Quiesce = nil, nil, v1alpha1.QuiesceScaleDown
	}
	free := hangs.holdPod("db-0")
	hangs.restart(func() { shared.waits = 1 })
	defer hangs.restart(func() { shared.waits = 0 })

	first := hangs.take()
	hangs.awaitEnding("db-0")
	hub.AwaitReady(other.World, other.take())
	require.True(t, hangs.Exists(first, first.Name))
	assert.Equal(t, v1alpha1.SnapshotQuiescing, first.Status.Phase)
	free()
	hub.AwaitReady(hangs.World, first)
}

// holdPod keeps a Pod from going until free is called.
func (w *world) holdPod(name string) (free func()) {
	w.T.Helper()
	pod := w.awaitRunning(name)
	before := pod.DeepCopy()
	pod.Finalizers = append(pod.Finalizers, "example.com/slow")
	require.NoError(w.T, w.Client.Patch(w.T.Context(), pod, client.MergeFrom(before)))
	return func() {
		pod := w.awaitEnding(name)
		before := pod.DeepCopy()
		pod.Finalizers = nil
		require.NoError(w.T, w.Client.Patch(w.T.Context(), pod, client.MergeFrom(before)))
	}
}
