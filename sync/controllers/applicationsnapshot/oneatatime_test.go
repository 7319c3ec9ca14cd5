package applicationsnapshot_test

import (
	"context"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/hub"
)

// S87: snapshots of an application do not release it under each other, and each is taken once the one before has released
// it, however that ended. The others look at the moment at which its status does not say so yet.
func TestSnapshot_oneAtATime(t *testing.T) {
	const once = "; mkdir data/once 2>/dev/null && exit 3; true"
	for name, test := range map[string]struct {
		script   string // of the pre-hook, when it has been waited for
		notReady bool   // are the VolumeSnapshots
		first    v1alpha1.SnapshotPhase
		others   v1alpha1.SnapshotPhase
	}{
		"the first is taken":                    {first: v1alpha1.SnapshotReady, others: v1alpha1.SnapshotReady},
		"the first fails":                       {script: once, first: v1alpha1.SnapshotFailed, others: v1alpha1.SnapshotReady},
		"the first waits for its driver, still": {notReady: true, first: v1alpha1.SnapshotWaiting, others: v1alpha1.SnapshotWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application("data")
			w.action("lock", "echo lock >>data/log; while ! test -e data/go; do sleep 0.1; done"+test.script, "")
			if test.notReady {
				defer w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, NotReady: true})()
			}
			released, looked := make(chan struct{}), make(chan struct{})
			w.handle(func(ctx context.Context, made write) error {
				if made.object.GetName() == "before" && isReleased(made.phase) && !isClosed(released) {
					close(released)
					select {
					case <-looked:
					case <-ctx.Done():
					}
				}
				return made.carryOut()
			})
			first := w.take()
			w.awaitPhase(first, v1alpha1.SnapshotQuiescing)
			others := []*v1alpha1.ApplicationSnapshot{w.snapshot("second"), w.snapshot("third")}
			for _, other := range others {
				hub.Await(w.World, other, "not waiting", func(s *v1alpha1.ApplicationSnapshot) bool {
					return conditions.GetMessage(s, v1alpha1.ReadyCondition) == "waiting for another ApplicationSnapshot of the application to release it"
				})
			}
			w.sh("db-0", "touch data/go")
			<-released
			for _, other := range others {
				hub.Change(w.World, other, func(s *v1alpha1.ApplicationSnapshot) {
					s.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
				})
				hub.Await(w.World, other, "does not look", func(s *v1alpha1.ApplicationSnapshot) bool { return s.Status.LastHandledReconcileAt == "now" })
				assert.Equal(t, v1alpha1.SnapshotCapturing, other.Status.Phase)
			}
			close(looked)
			w.awaitPhase(first, test.first)
			for _, other := range others {
				w.awaitPhase(other, test.others)
			}
			assert.Equal(t, "lock unlock lock unlock lock unlock", w.sh("db-0", "cat data/log"))
		})
	}
}

// isReleased reports whether a phase is one after the application was released.
func isReleased(phase v1alpha1.SnapshotPhase) bool {
	switch phase {
	case v1alpha1.SnapshotWaiting, v1alpha1.SnapshotBinding, v1alpha1.SnapshotReady, v1alpha1.SnapshotFailed:
		return true
	}
	return false
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
