package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

func rollback(namespace, name string) *v1alpha1.ApplicationRollback {
	return &v1alpha1.ApplicationRollback{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ApplicationRollbackSpec{
			SnapshotClassName: "cold", ApplicationName: "mongo",
			Source: v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: "monday"}},
		},
	}
}

// rolling has a rollback say that it is at a step.
func rolling(t *testing.T, c client.Client, r *v1alpha1.ApplicationRollback, at v1alpha1.RollbackPhase, change func(*v1alpha1.ApplicationRollbackStatus)) {
	t.Helper()
	says(t, c, r, func(r *v1alpha1.ApplicationRollback) {
		r.Status.Phase, r.Status.ObservedGeneration = at, r.Generation
		if change != nil {
			change(&r.Status)
		}
	})
}

// S77, C22, C64: the object is written as the flags say, each step is a line, and the way back is
// said in the end.
func TestRollback_stepByStep(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"), taken(namespace, "monday", "mongo"))
	run := begin(t, cluster.KubeconfigFile(), "rollback", "mongo", "-n", namespace, "--to", "monday", "--name", "back", "--undo-period", "2h", "--hold=false")
	run.prints(t, "created\n")
	r := rollback(namespace, "back")
	want := r.Spec.DeepCopy()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	want.UndoPeriod, want.Hold, want.Decision = &metav1.Duration{Duration: 2 * time.Hour}, new(false), v1alpha1.RollbackUndecided
	assert.Equal(t, *want, r.Spec, "the class is that of the snapshot")

	rolling(t, c, r, v1alpha1.RollbackSaving, nil)
	rolling(t, c, r, v1alpha1.RollbackHolding, func(s *v1alpha1.ApplicationRollbackStatus) { s.SafetySnapshot = "back-before" })
	run.prints(t, "Saving")
	rolling(t, c, r, v1alpha1.RollbackScalingDown, func(s *v1alpha1.ApplicationRollbackStatus) {
		s.Held = []v1alpha1.HeldObject{{ObjectReference: v1alpha1.ObjectReference{Kind: "Service", Name: "mongo"}}}
	})
	run.prints(t, "Holding")
	rolling(t, c, r, v1alpha1.RollbackSwapping, func(s *v1alpha1.ApplicationRollbackStatus) {
		s.Volumes = []v1alpha1.RollbackVolume{{Claim: "data-mongo-0", After: "pv-2"}}
	})
	run.prints(t, "ScalingDown")
	rolling(t, c, r, v1alpha1.RollbackChecking, func(s *v1alpha1.ApplicationRollbackStatus) { s.Volumes[0].Swapped = true })
	run.prints(t, "Swapping")
	rolling(t, c, r, v1alpha1.RollbackCompleted, nil)
	assert.Equal(t, 0, run.ends(t), run.errOut.String())
	assert.Equal(t, strings.ReplaceAll(`ApplicationRollback/back in NS created
  Saving TIME  the state before is in ApplicationSnapshot/back-before
  Holding TIME  1 object held
  ScalingDown TIME  0 workloads scaled to zero
  Swapping TIME  1 of 1 volume swapped
  Checking TIME
ApplicationRollback/back in NS: completed: the application is as in the snapshot (TIME)
The volumes of before are kept for 2h0m0s: waybill rollback mongo -n NS --undo goes back to them, --confirm deletes them
`, "NS", namespace), timeless(run.out.String()))
	got := waybill(t, cluster, "get", "rollbacks", "-n", namespace)
	assert.Equal(t, []string{"back", "mongo", "monday", "Completed"}, columns(got.out)[1][:4])
}

// A rollback that failed has gone back, which is not what was asked for.
func TestRollback_failed(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"), taken(namespace, "monday", "mongo"))
	for phase, want := range map[v1alpha1.RollbackPhase]string{
		v1alpha1.RollbackReverted: "reverted: the application is as it was before the rollback: RestoreFailed: the driver refused (",
		v1alpha1.RollbackFailed:   "failed: RestoreFailed: the driver refused (",
	} {
		name := strings.ToLower(string(phase))
		run := begin(t, cluster.KubeconfigFile(), "rollback", "mongo", "-n", namespace, "--to", "monday", "--name", name)
		run.prints(t, "created\n")
		rolling(t, c, rollback(namespace, name), phase, func(s *v1alpha1.ApplicationRollbackStatus) {
			s.Error = &v1alpha1.DataError{Reason: "RestoreFailed", Message: "the driver refused"}
		})
		assert.Equal(t, 1, run.ends(t))
		assert.Contains(t, run.errOut.String(), "ApplicationRollback/"+name+" in "+namespace+": "+want)
	}
}

// C64, C65: the newest rollback is undone, confirmed or released; one that is past that says so.
func TestRollback_decides(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"))
	act := func(args ...string) result {
		return waybill(t, cluster, append([]string{"rollback", "mongo", "-n", namespace}, args...)...)
	}
	got := act("--undo")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "StatefulApplication/mongo in "+namespace+" was not rolled back: there is no ApplicationRollback of it")

	r := rollback(namespace, "back")
	create(t, c, r)
	rolling(t, c, r, v1alpha1.RollbackApplying, nil)
	got = act("--confirm")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "ApplicationRollback/back in "+namespace+" is not Completed, but Applying: it can be confirmed after that")
	rolling(t, c, r, v1alpha1.RollbackCompleted, func(s *v1alpha1.ApplicationRollbackStatus) {
		s.Held = []v1alpha1.HeldObject{{}, {}}
		s.SafetySnapshot = "before"
	})
	got = act("--release")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "ApplicationRollback/back in "+namespace+": 2 objects released; those who deliver them put back what they want\n", got.out)
	got = act("--release", "--name", "back")
	assert.Equal(t, "ApplicationRollback/back in "+namespace+" holds nothing already\n", got.out)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	assert.False(t, *r.Spec.Hold)

	run := begin(t, cluster.KubeconfigFile(), "rollback", "mongo", "-n", namespace, "--undo")
	run.prints(t, "decision is Undone\n")
	rolling(t, c, r, v1alpha1.RollbackCompleted, func(s *v1alpha1.ApplicationRollbackStatus) {
		s.Conditions = []metav1.Condition{condition("Ready", "False", "UndoRefused", "it was resized"), condition("Stalled", "True", "UndoRefused", "it was resized")}
	})
	assert.Equal(t, 1, run.ends(t))
	assert.Contains(t, run.errOut.String(), "not ready: UndoRefused: it was resized (")
	says(t, c, r, func(r *v1alpha1.ApplicationRollback) { r.Status.Conditions = nil })

	run = begin(t, cluster.KubeconfigFile(), "rollback", "mongo", "-n", namespace, "--undo")
	run.prints(t, "decision is Undone\n")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	assert.Equal(t, v1alpha1.RollbackUndone, r.Spec.Decision)
	rolling(t, c, r, v1alpha1.RollbackReverting, nil)
	run.prints(t, "Completed")
	rolling(t, c, r, v1alpha1.RollbackReverted, nil)
	assert.Equal(t, 0, run.ends(t), run.errOut.String())
	assert.Contains(t, run.out.String(), "reverted: the application is as it was before the rollback (")
	got = act("--undo")
	assert.Contains(t, got.errOut, "ApplicationRollback/back in "+namespace+" is Reverted already")

	rolling(t, c, r, v1alpha1.RollbackFinal, nil)
	got = act("--undo")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "cannot be undone: the volumes of before are deleted; roll back to the snapshot that was taken of them: "+
		"waybill rollback mongo -n "+namespace+" --to before")
}

// With --watch, a rollback is followed beyond its end, and left when the user has seen enough.
func TestRollback_watch(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"), taken(namespace, "monday", "mongo"))
	follow := func(name string) (*running, *v1alpha1.ApplicationRollback) {
		run := begin(t, cluster.KubeconfigFile(), "rollback", "mongo", "-n", namespace, "--to", "monday", "--watch", "--name", name)
		run.prints(t, "created\n")
		r := rollback(namespace, name)
		rolling(t, c, r, v1alpha1.RollbackChecking, nil)
		rolling(t, c, r, v1alpha1.RollbackCompleted, nil)
		run.prints(t, "Checking")
		return run, r
	}
	run, r := follow("one")
	rolling(t, c, r, v1alpha1.RollbackFinal, nil)
	assert.Equal(t, 0, run.ends(t), run.errOut.String())
	assert.Contains(t, run.out.String(), "confirmed: the volumes of before are deleted (")
	run, _ = follow("two")
	assert.Equal(t, 0, run.stop(), run.errOut.String())
}

func TestRollback_refuses(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, stateful(namespace, "mongo"))
	for want, args := range map[string][]string{
		"choose one of --to SNAPSHOT, --undo, --confirm and --release": {"--to", "a", "--undo"},
		"choose one of --to SNAPSHOT, --undo":                          {},
		"are for --to":                                                 {"--undo", "--undo-period", "1h"},
		"--watch and --wait=false exclude each other":                  {"--to", "a", "--watch", "--wait=false"},
		"--undo-period must be 0 or more":                              {"--to", "a", "--undo-period", "-1s"},
		`applicationsnapshots.apps.waybill.dev "none" not found`:       {"--to", "none"},
	} {
		got := waybill(t, cluster, append([]string{"rollback", "mongo", "-n", namespace}, args...)...)
		assert.Equal(t, 2, got.code, want)
		assert.Contains(t, got.errOut, want)
	}
}
