package applicationsnapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/hub"
)

// S95: a process that ends at any step leaves nothing quiesced, and the next one goes on.
func TestSnapshot_survivesARestart(t *testing.T) {
	const hangs = "; while ! test -e data/go; do sleep 0.1; done"
	for _, test := range []struct {
		at      v1alpha1.SnapshotPhase
		before  func(w *world) (end func())
		log     string
		reason  string
		deleted bool
		gone    bool // is the Application, meanwhile
	}{
		{
			at: v1alpha1.SnapshotQuiescing, log: "lock unlock", reason: v1alpha1.HookInterruptedReason,
			before: func(w *world) func() {
				w.action("lock", "echo lock >>data/log"+hangs, "")
				return func() { w.sh("db-0", "touch data/go") }
			},
		},
		{
			at: v1alpha1.SnapshotCutting, log: "lock unlock",
			before: func(w *world) func() {
				return w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Delay: 2e9})
			},
		},
		{
			at: v1alpha1.SnapshotCutting, log: "lock unlock", deleted: true,
			before: func(w *world) func() {
				return w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Delay: 2e9})
			},
		},
		{
			at: v1alpha1.SnapshotCutting, log: "lock unlock", gone: true,
			before: func(w *world) func() {
				return w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Delay: 2e9})
			},
		},
		{
			// It is not known whether it ran to its end: it runs again.
			at: v1alpha1.SnapshotReleasing, log: "lock unlock unlock",
			before: func(w *world) func() {
				w.action("unlock", "echo unlock >>data/log"+hangs, "")
				return func() { w.sh("db-0", "touch data/go") }
			},
		},
		{
			at: v1alpha1.SnapshotWaiting, log: "lock unlock",
			before: func(w *world) func() {
				return w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, NotReady: true})
			},
		},
	} {
		name := string(test.at)
		if test.deleted {
			name += ", and deleted meanwhile"
		}
		if test.gone {
			name += ", and without its Application meanwhile"
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.application("data")
			end := test.before(w)
			s := w.take()
			w.awaitPhase(s, test.at)
			if test.log != "" && test.at != v1alpha1.SnapshotCutting {
				require.True(t, w.Eventually(func() bool { return w.sh("db-0", "cat data/log || true") != "" }))
			}
			if test.at == v1alpha1.SnapshotReleasing {
				require.True(t, w.Eventually(func() bool { return w.sh("db-0", "cat data/log") == "lock unlock" }))
			}
			w.restart(func() {
				end()
				if test.deleted {
					require.NoError(t, w.Client.Delete(t.Context(), s))
				}
				if test.gone {
					require.NoError(t, w.Client.Delete(t.Context(), &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}))
				}
			})
			switch {
			case test.deleted:
				w.AwaitGone(s, s.Name)
				assert.Empty(t, w.volumeSnapshots())
				assert.Zero(t, w.stored(s))
			case test.reason != "":
				assert.Equal(t, test.reason, w.awaitFailed(s).Reason)
			default:
				hub.AwaitReady(w.World, s)
				assert.Equal(t, v1alpha1.ConsistencyApplication, s.Status.Consistency)
			}
			assert.Equal(t, test.log, w.sh("db-0", "cat data/log"))
		})
	}
}

// S95, C63: what was scaled to zero gets its replicas back from the next process, too.
func TestSnapshot_scalesUpAfterARestart(t *testing.T) {
	w := newWorld(t)
	w.application("data")
	w.class.PreHooks, w.class.PostHooks, w.class.Quiesce = nil, nil, v1alpha1.QuiesceScaleDown
	set := w.set()
	set.Spec.Template.Finalizers = []string{"example.com/slow"}
	before := w.awaitRunning("db-0")
	require.NoError(t, w.Client.Update(t.Context(), set))
	require.True(t, w.Eventually(func() bool { return w.awaitRunning("db-0").UID != before.UID }))
	s := w.take()
	w.awaitPhase(s, v1alpha1.SnapshotQuiescing)
	pod := w.awaitEnding("db-0")
	w.restart(func() {
		pod.Finalizers = nil
		require.NoError(t, w.Client.Update(t.Context(), pod))
	})
	hub.AwaitReady(w.World, s)
	assert.Equal(t, v1alpha1.ConsistencyCold, s.Status.Consistency)
	assert.Equal(t, int32(1), *w.set().Spec.Replicas)
	for _, p := range []string{"db-0"} {
		pod := w.awaitRunning(p)
		pod.Finalizers = nil
		require.NoError(t, w.Client.Update(t.Context(), pod))
	}
}

// S36, S43: thousands of snapshots that are done cost nothing.
func TestSnapshot_thatIsDoneIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.application()
	w.class.PreHooks, w.class.PostHooks = nil, nil
	s := hub.AwaitReady(w.World, w.take(func(s *v1alpha1.ApplicationSnapshot) { s.Spec.TTL = metav1.Duration{Duration: 1e12} }))
	version := s.ResourceVersion
	w.restart(func() {})
	hub.AwaitReady(w.World, w.snapshot("after"))
	require.True(t, w.Exists(s, s.Name))
	assert.Equal(t, version, s.ResourceVersion)
}
