package applicationsnapshot_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/hub"
	"waybill.dev/waybill/test/program"
)

// S95: killed at each step, from one after the other to all of them, waybill-sync leaves nothing quiesced.
func TestSnapshot_survivesKills(t *testing.T) {
	bin, err := program.Build(t.Context(), program.Sync)
	require.NoError(t, err)
	w := newWorld(t)
	w.application("data")
	w.action("lock", "echo lock >>data/log; while test -e data/hang-lock; do sleep 0.1; done", "")
	w.action("unlock", "while test -e data/hang-unlock; do sleep 0.1; done; echo unlock >>data/log", "")
	w.restart(func() { // the controllers of the other tests rest meanwhile
		for _, run := range []struct{ at, last []v1alpha1.SnapshotPhase }{
			{at: []v1alpha1.SnapshotPhase{v1alpha1.SnapshotCapturing}},
			{at: lasting[:1], last: lasting[:1]},
			{
				at: []v1alpha1.SnapshotPhase{
					v1alpha1.SnapshotCapturing, v1alpha1.SnapshotQuiescing, v1alpha1.SnapshotCutting, v1alpha1.SnapshotReleasing, v1alpha1.SnapshotWaiting, v1alpha1.SnapshotBinding,
				},
			},
			{at: append(slices.Clone(lasting[1:]), v1alpha1.SnapshotBinding), last: lasting[1:]},
		} {
			w.killed(bin, run.at, run.last)
		}
	})
}

// lasting are the phases that tests can have last until the process is killed.
var lasting = []v1alpha1.SnapshotPhase{v1alpha1.SnapshotQuiescing, v1alpha1.SnapshotCutting, v1alpha1.SnapshotReleasing, v1alpha1.SnapshotWaiting}

// prolong has a phase last until end is called.
func (w *world) prolong(phase v1alpha1.SnapshotPhase) (end func()) {
	w.T.Helper()
	hang := func(hook string) func() {
		w.sh("db-0", "touch data/hang-"+hook)
		return func() { w.sh("db-0", "rm -f data/hang-"+hook) }
	}
	switch phase {
	case v1alpha1.SnapshotQuiescing:
		return hang("lock")
	case v1alpha1.SnapshotCutting: // and the one after it, if that is to last, too
		return w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Delay: 2 * time.Second, Times: 1, NotReady: true})
	case v1alpha1.SnapshotReleasing:
		return hang("unlock")
	default:
		return w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, NotReady: true})
	}
}

// killed takes a snapshot, and kills the process when it is seen at each of the phases, or behind the last one. Some of
// these last until then.
func (w *world) killed(bin string, at, last []v1alpha1.SnapshotPhase) {
	w.T.Helper()
	w.sh("db-0", "rm -f data/log")
	ends := map[v1alpha1.SnapshotPhase]func(){}
	for _, phase := range last {
		ends[phase] = w.prolong(phase)
		defer ends[phase]()
	}
	process := w.process(bin)
	defer func() { assert.NoError(w.T, process.Kill()) }()
	if w.class.UID == "" {
		w.Create(w.class)
	}
	s := w.snapshot("at-" + strings.ToLower(string(at[len(at)-1])) + "-of-" + string(rune('a'+len(at))))
	var died []v1alpha1.SnapshotPhase
	for _, phase := range at {
		hub.Await(w.World, s, "never at "+string(phase), func(s *v1alpha1.ApplicationSnapshot) bool {
			return s.Status.Phase == phase || order[s.Status.Phase] > order[phase]
		})
		if s.Status.Phase == phase {
			died = append(died, phase)
		}
		require.NoError(w.T, process.Kill())
		if end := ends[phase]; end != nil {
			end()
		}
		process = w.process(bin)
	}
	hub.Await(w.World, s, "not ended", func(s *v1alpha1.ApplicationSnapshot) bool { return s.Status.CompletionTime != nil })
	assert.Subset(w.T, died, last, "it was killed at these phases of %v only", at)
	log := w.sh("db-0", "cat data/log || true")
	if s.Status.Phase == v1alpha1.SnapshotReady {
		assert.True(w.T, strings.HasPrefix(log, "lock "), log)
	} else {
		assert.Equal(w.T, v1alpha1.HookInterruptedReason, s.Status.Error.Reason, "nothing else fails")
	}
	assert.True(w.T, log == "" || strings.HasSuffix(log, "unlock"), "quiesced after %v: %s", at, log)
}

// order of the phases.
var order = map[v1alpha1.SnapshotPhase]int{
	v1alpha1.SnapshotPending: 1, v1alpha1.SnapshotCapturing: 2, v1alpha1.SnapshotQuiescing: 3, v1alpha1.SnapshotCutting: 4, v1alpha1.SnapshotReleasing: 5,
	v1alpha1.SnapshotWaiting: 6, v1alpha1.SnapshotBinding: 7, v1alpha1.SnapshotReady: 8, v1alpha1.SnapshotFailed: 8,
}

func (w *world) process(bin string) *env.Process {
	w.T.Helper()
	p, err := program.Start(w.T.Context(), program.Options{
		Name: program.Sync, Bin: bin, Kubeconfig: w.cluster.KubeconfigFile(), Args: []string{"--controllers=data", "--cache-dir=" + w.T.TempDir()},
	})
	require.NoError(w.T, err)
	return p
}
