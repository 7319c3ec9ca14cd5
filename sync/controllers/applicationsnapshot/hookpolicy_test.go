package applicationsnapshot_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C22, C63: hookPolicy Try takes a snapshot also of what hooks cannot bring to rest, and says so.
func TestSnapshot_triesHooks(t *testing.T) {
	for name, test := range map[string]struct {
		before      func(w *world)
		consistency v1alpha1.SnapshotConsistency
		pre, post   string // why the hooks are not complete; empty if they are
		log         string
	}{
		"they run": {consistency: v1alpha1.ConsistencyApplication, log: "lock unlock"},
		"no container runs that a hook selects": {
			before: func(w *world) {
				w.class.PreHooks[0].PodFilter = &metav1.LabelSelector{MatchLabels: map[string]string{"role": "leader"}}
			},
			consistency: v1alpha1.ConsistencyPerVolume, pre: v1alpha1.HookTargetInvalidReason, log: "nothing",
		},
		"a HookAction is missing": {
			before:      func(w *world) { w.class.PostHooks[0].ActionName = "none" },
			consistency: v1alpha1.ConsistencyPerVolume, pre: v1alpha1.HookActionNotFoundReason, log: "nothing",
		},
		"a pre-hook fails": {
			before:      func(w *world) { w.action("lock", "echo lock >>data/log; exit 3", "") },
			consistency: v1alpha1.ConsistencyPerVolume, pre: v1alpha1.HookFailedReason, log: "lock unlock",
		},
		"every hook fails": {
			before: func(w *world) {
				w.action("lock", "exit 3", "")
				w.action("unlock", "echo unlock >>data/log; exit 4", "")
			},
			consistency: v1alpha1.ConsistencyPerVolume, pre: v1alpha1.HookFailedReason, post: v1alpha1.PostHookFailedReason, log: "unlock",
		},
		"the second of two pre-hooks fails": {
			before: func(w *world) {
				w.action("second", "exit 1", "")
				w.twoPods()
			},
			consistency: v1alpha1.ConsistencyPerVolume, pre: v1alpha1.HookFailedReason, log: "lock unlock",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application("data")
			if test.before != nil {
				test.before(w)
			}
			s := hub.AwaitReady(w.World, w.take(func(s *v1alpha1.ApplicationSnapshot) { s.Spec.HookPolicy = v1alpha1.HookPolicyTry }))
			assert.Equal(t, test.consistency, s.Status.Consistency)
			assert.Nil(t, s.Status.Error)
			for condition, why := range map[string]string{
				v1alpha1.PreHookExecutionCompletedCondition: test.pre, v1alpha1.PostHookExecutionCompletedCondition: test.post,
			} {
				assert.Equal(t, why != "", conditions.IsFalse(s, condition), condition)
				if why != "" {
					assert.Equal(t, why, conditions.GetReason(s, condition))
				}
			}
			assert.Equal(t, test.log, w.sh("db-0", "cat data/log || echo nothing"))
			assert.Contains(t, w.content(s).Spec.VolumeSnapshotRefs, "data-db-0")
		})
	}
}

// S94: what was quiesced and cannot be released is no small matter, whatever the policy.
func TestSnapshot_triesHooksAndIsReleased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	w.action("unlock", "exit 4", "")
	failure := w.awaitFailed(w.take(func(s *v1alpha1.ApplicationSnapshot) { s.Spec.HookPolicy = v1alpha1.HookPolicyTry }))
	assert.Equal(t, v1alpha1.PostHookFailedReason, failure.Reason)
}

// S87, S91: hooks run one after the other, before the cut and after it.
func TestSnapshot_runsOneHookAfterTheOther(t *testing.T) {
	t.Parallel()
	const hangs = "; while ! test -e data/go; do sleep 0.1; done; rm data/go"
	w := newWorld(t)
	w.application("data")
	w.action("lock", "echo lock >>data/log"+hangs, "")
	w.action("unlock", "echo unlock >>data/log"+hangs, "")
	w.action("second", "echo second >>data/log", "")
	w.twoPods()
	w.class.PostHooks = nil
	for _, pre := range w.class.PreHooks {
		post := pre
		if post.Name = "post-" + pre.Name; pre.ActionName == "lock" {
			post.ActionName = "unlock"
		}
		w.class.PostHooks = append(w.class.PostHooks, post)
	}
	s := w.take()
	for _, step := range []struct{ first, second string }{{"lock", "nothing"}, {"lock unlock", "second"}} {
		w.Eventually(func() bool { return w.sh("db-0", "cat data/log || true") == step.first })
		assert.Equal(t, step.first, w.sh("db-0", "cat data/log"))
		assert.Equal(t, step.second, w.sh("db-1", "cat data/log || echo nothing"), "the first hook has not ended")
		w.sh("db-0", "touch data/go")
	}
	hub.AwaitReady(w.World, s)
	assert.Equal(t, "second second", w.sh("db-1", "cat data/log"))
}
