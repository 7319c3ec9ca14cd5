package reconcile_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

func TestFinish_turnsOutcomesIntoConditions(t *testing.T) {
	cases := map[string]struct {
		reason  string
		outcome reconcile.Outcome
		err     error

		ready       metav1.ConditionStatus
		readyReason string
		reconciling bool
		stalled     bool
		requeue     time.Duration
	}{
		"done": {
			reason: "everything is as wanted", outcome: reconcile.Outcome{Message: "applied", RequeueAfter: time.Minute},
			ready: metav1.ConditionTrue, readyReason: v1alpha1.SucceededReason, requeue: time.Minute,
		},
		"still to be seen": {
			reason: "objects are applied and not yet healthy", outcome: reconcile.Outcome{Unknown: v1alpha1.NotHealthyReason, Message: "1 of 2"},
			ready: metav1.ConditionUnknown, readyReason: v1alpha1.NotHealthyReason, reconciling: true,
		},
		"stalled": {
			reason: "only a person can help, so nothing is retried", err: reconcile.Stalled(v1alpha1.InvalidSpecReason, "spec.path: bad"),
			ready: metav1.ConditionFalse, readyReason: v1alpha1.InvalidSpecReason, stalled: true,
		},
		"stalled, wrapped": {
			reason: "an error keeps its meaning however deep it is wrapped",
			err:    fmt.Errorf("step: %w", reconcile.Stalled(v1alpha1.InvalidSpecReason, "bad")),
			ready:  metav1.ConditionFalse, readyReason: v1alpha1.InvalidSpecReason, stalled: true,
		},
		"waiting": {
			reason: "an event wakes it, and at the latest the time given",
			err:    reconcile.Waiting(v1alpha1.SecretNotFoundReason, 30*time.Second, "no Secret"),
			ready:  metav1.ConditionFalse, readyReason: v1alpha1.SecretNotFoundReason, reconciling: true, requeue: 30 * time.Second,
		},
		"failed": {
			reason: "a try is repeated after the back-off", err: reconcile.Failed(v1alpha1.GitFailedReason, "broken"),
			ready: metav1.ConditionFalse, readyReason: v1alpha1.GitFailedReason, reconciling: true, requeue: time.Second,
		},
		"failed beside what is waited for": {
			reason:  "the try is repeated, though the status tells of something else",
			outcome: reconcile.Outcome{RequeueAfter: time.Minute, Beside: reconcile.Failed(v1alpha1.GitFailedReason, "broken")},
			err:     reconcile.Waiting(v1alpha1.SecretNotFoundReason, 0, "no Secret"),
			ready:   metav1.ConditionFalse, readyReason: v1alpha1.SecretNotFoundReason, reconciling: true, requeue: time.Second,
		},
		"failed beside what a person has to do": {
			reason:  "the try is repeated, though nothing else is",
			outcome: reconcile.Outcome{Beside: reconcile.Failed(v1alpha1.GitFailedReason, "broken")},
			err:     reconcile.Stalled(v1alpha1.InvalidSpecReason, "spec.path: bad"),
			ready:   metav1.ConditionFalse, readyReason: v1alpha1.InvalidSpecReason, stalled: true, requeue: time.Second,
		},
		"waiting beside what a person has to do": {
			reason:  "an event wakes it",
			outcome: reconcile.Outcome{Beside: reconcile.Waiting(v1alpha1.SecretNotFoundReason, 0, "no Secret")},
			err:     reconcile.Stalled(v1alpha1.InvalidSpecReason, "spec.path: bad"),
			ready:   metav1.ConditionFalse, readyReason: v1alpha1.InvalidSpecReason, stalled: true,
		},
		"failed without a reason": {
			reason: "an error that nobody has sorted is retried", err: errors.New("odd"),
			ready: metav1.ConditionFalse, readyReason: v1alpha1.ProgressingWithRetryReason, reconciling: true, requeue: time.Second,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newGitSync())
			gs := w.get(t)
			result, err := w.begin(gs).Finish(t.Context(), c.outcome, c.err)
			require.NoError(t, err)

			got := w.get(t)
			ready := conditions.Get(got, v1alpha1.ReadyCondition)
			require.NotNil(t, ready)
			assert.Equal(t, c.ready, ready.Status, c.reason)
			assert.Equal(t, c.readyReason, ready.Reason, c.reason)
			assert.Equal(t, c.reconciling, conditions.IsReconciling(got), c.reason)
			assert.Equal(t, c.stalled, conditions.IsStalled(got), c.reason)
			assert.Equal(t, c.requeue, result.RequeueAfter, c.reason)
			assert.EqualValues(t, 3, got.Status.ObservedGeneration)
			assert.Equal(t, "noon", got.Status.LastHandledReconcileAt)
			assert.Equal(t, 1, w.writes, "one write, whatever the outcome")
			assert.Len(t, w.events.Events, 1)
		})
	}
}

// A pass that is not done may mark what still holds: that it holds in the new generation, too, is written
// along with what the pass comes to.
func TestFinish_pendingWritesNoNewGenerationAlone(t *testing.T) {
	gs := newGitSync()
	conditions.MarkTrue(gs, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "applied")
	gs.Generation++
	w := newWorld(t, gs)
	for writes, what := range []string{"applied", "applied more"} {
		w.writes = 0
		obj := w.get(t)
		pass := w.begin(obj)
		conditions.MarkTrue(obj, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "%s", what)
		_, err := pass.Finish(t.Context(), reconcile.Outcome{Pending: true}, nil)
		require.NoError(t, err)
		assert.Equal(t, writes, w.writes, what)
	}
}

func TestFinish_writesNothingWhenNothingChanged(t *testing.T) {
	w := newWorld(t, newGitSync())
	for range 3 {
		_, err := w.begin(w.get(t)).Finish(t.Context(), reconcile.Outcome{Message: "applied"}, nil)
		require.NoError(t, err)
	}
	assert.Equal(t, 1, w.writes)
	assert.Len(t, w.events.Events, 1, "and says nothing twice")
}

func TestFinish_pendingLeavesConditionsAlone(t *testing.T) {
	w := newWorld(t, newGitSync())
	_, err := w.begin(w.get(t)).Finish(t.Context(), reconcile.Outcome{Pending: true}, nil)
	require.NoError(t, err)
	assert.Zero(t, w.writes)
	assert.Empty(t, w.get(t).Status.Conditions)
}

func TestFinish_backoffGrowsUntilSuccess(t *testing.T) {
	w := newWorld(t, newGitSync())
	finish := func(err error) time.Duration {
		result, finishErr := w.begin(w.get(t)).Finish(t.Context(), reconcile.Outcome{}, err)
		require.NoError(t, finishErr)
		return result.RequeueAfter
	}
	failure := reconcile.Failed(v1alpha1.GitFailedReason, "broken")
	var waits []time.Duration
	for range 5 {
		waits = append(waits, finish(failure))
	}
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second}, waits)
	finish(nil)
	assert.Equal(t, time.Second, finish(failure), "success starts over")
}

func TestBegin_looksPastAStaleCache(t *testing.T) {
	w := newWorld(t, newGitSync())
	stale := w.get(t)
	_, err := w.begin(stale.DeepCopy()).Finish(t.Context(), reconcile.Outcome{}, reconcile.Failed(v1alpha1.GitFailedReason, "broken"))
	require.NoError(t, err)
	_, err = w.begin(stale.DeepCopy()).Finish(t.Context(), reconcile.Outcome{Message: "applied"}, nil)
	require.NoError(t, err)

	got := w.get(t)
	assert.True(t, conditions.IsReady(got))
	assert.False(t, conditions.IsReconciling(got), "what the write before had set is taken back")
}

// An object that was deleted during its pass has no status to be written, which is no error, and
// nothing to tell.
func TestFinish_ofWhatIsGone(t *testing.T) {
	w := newWorld(t, newGitSync())
	gs := w.get(t)
	pass := w.begin(gs)
	require.NoError(t, w.client.Delete(t.Context(), gs.DeepCopy()))
	result, err := pass.Finish(t.Context(), reconcile.Outcome{Message: "applied", RequeueAfter: time.Minute}, nil)
	require.NoError(t, err)
	assert.Zero(t, result)
	assert.Empty(t, w.events.Events)
}

// A request that was not handled everywhere is not said to be.
func TestFinish_unhandled(t *testing.T) {
	w := newWorld(t, newGitSync())
	gs := w.get(t)
	_, err := w.begin(gs).Finish(t.Context(), reconcile.Outcome{Unhandled: true}, reconcile.Waiting(v1alpha1.ResourcesFailedReason, 0, "refused"))
	require.NoError(t, err)
	assert.Empty(t, w.get(t).Status.LastHandledReconcileAt)
	_, err = w.begin(gs).Finish(t.Context(), reconcile.Outcome{}, nil)
	require.NoError(t, err)
	assert.Equal(t, "noon", w.get(t).Status.LastHandledReconcileAt)
}
