package release_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/deliver/release"
)

// atomic tries a release that the API server refuses, and undoes it.
func (w *world) atomic(v values, limit int) (release.Result, error) {
	w.Helper()
	d := w.broken(v, limit)
	d.Options.Atomic = true
	return w.try(w.Context(), d)
}

func (w *world) greeting() string {
	w.Helper()
	config, err := w.configMap("web")
	require.NoError(w, err)
	return config.Data["greeting"]
}

// K47, K53: a revision that never worked is none to go back to because the rollback from it failed, too; and nothing of it is left.
func TestRollback_thatFailsKeepsTheFallback(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"greeting": "one"}))
	allow := w.refuse(greeting("one"))
	for range 2 {
		result, err := w.atomic(values{"greeting": "two", "extra": true}, 0)
		require.ErrorContains(t, err, "could not be undone")
		require.NotNil(t, result.Release.Fallback)
		assert.EqualValues(t, 1, result.Release.Fallback.Revision)
	}
	assert.Equal(t, []string{"1 deployed", "2 failed", "3 failed", "4 failed", "5 failed"}, w.revisions("web"))
	assert.Equal(t, "two", w.greeting())
	allow()
	_, err := w.atomic(values{"greeting": "two"}, 0)
	require.ErrorContains(t, err, "and was rolled back")
	assert.Equal(t, "one", w.greeting())
	assert.False(t, w.has("web-extra"))
}

// Nor does it count as good once another has replaced it.
func TestRollback_doesNotGoBackToWhatFailedAndWasReplaced(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"greeting": "one"}))
	w.ensure(w.desired("web", values{"greeting": "two"}))
	allow := w.refuse(greeting("one"))
	result, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, release.Verdict{Why: "not healthy"})
	require.Error(t, err)
	w.known["web"] = result.Release
	w.ensure(w.desired("web", values{"greeting": "three"}))
	assert.Equal(t, []string{"1 superseded", "2 failed", "3 failed", "4 deployed"}, w.revisions("web"))
	allow()
	_, err = w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, release.Verdict{Why: "not healthy"})
	require.NoError(t, err)
	assert.Equal(t, "one", w.greeting())
}

// K47: the last good revision stays, though nothing is deployed and many have failed since.
func TestRollback_hasARevisionToGoBackToAfterManyFailures(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"greeting": "one"}))
	w.ensure(w.desired("web", values{"greeting": "two"}))
	allow := w.refuse(greeting("one"))
	result, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{HistoryLimit: 2}, release.Verdict{Why: "not healthy"})
	require.Error(t, err)
	w.known["web"] = result.Release
	for range 3 {
		result, err = w.atomic(values{"greeting": "three"}, 2)
		require.Error(t, err)
		assert.Equal(t, release.ActionUpgrade, result.Action, "it was installed once")
	}
	assert.Contains(t, w.revisions("web"), "1 superseded")
	allow()
	_, err = w.atomic(values{"greeting": "three"}, 2)
	require.ErrorContains(t, err, "and was rolled back")
	assert.Equal(t, "one", w.greeting())
}
