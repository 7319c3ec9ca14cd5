package release_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
)

// broken returns a release that the API server refuses.
func (w *world) broken(v values, limit int) release.Desired {
	w.Helper()
	d := w.desired("web", v)
	d.Values["broken"] = true
	d.Options.HistoryLimit = limit
	return d
}

// failing tries a release that the API server refuses.
func (w *world) failing(v values, limit int) release.Result {
	w.Helper()
	result, err := w.try(w.Context(), w.broken(v, limit))
	require.Error(w, err)
	return result
}

// K47: only the newest revision and the one to go back to are noted; that others of our own have failed is no alarm.
func TestEnsure_failsSeveralTimesWithoutAnAlarm(t *testing.T) {
	w := newWorld(t)
	for range 4 {
		result := w.failing(values{}, 0)
		assert.Empty(t, result.Altered)
	}
	assert.Empty(t, w.ensure(w.desired("web", nil)).Altered)
	for range 4 {
		result := w.failing(values{"extra": true}, 0)
		assert.Empty(t, result.Altered)
	}
	result := w.ensure(w.desired("web", values{"replicas": 2}))
	assert.Empty(t, result.Altered)
	_, err := w.configMap("web-extra")
	assert.True(t, apierrors.IsNotFound(err), "what the first of them left is gone")
}

// Nor is it one when the release goes; what the noted revision names goes without our mark.
func TestUninstall_afterSeveralFailures(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	for range 3 {
		w.failing(values{}, 0)
	}
	unmark := []byte(`{"metadata":{"labels":{"` + v1alpha1.OwnerHashLabel + `":null}}}`)
	_, err := w.client.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "web", types.MergePatchType, unmark, metav1.PatchOptions{})
	require.NoError(t, err)
	left, err := w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, nil)
	require.NoError(t, err)
	assert.Empty(t, left.Altered)
	assert.Empty(t, left.Kept)
	_, err = w.configMap("web")
	assert.True(t, apierrors.IsNotFound(err))
}

// A change to a noted record is an alarm among failures, too, and it stays one when the action is undone.
func TestEnsure_reportsAnAlteredRecordAmongFailures(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	w.failing(values{}, 0)
	w.failing(values{}, 0)
	w.alter("web", 3, w.addBinding)
	result := w.failing(values{}, 0)
	assert.Equal(t, []int{3}, result.Altered)

	w.ensure(w.desired("web", nil))
	byHand := action.NewRollback(w.helm())
	byHand.Version = 1
	require.NoError(t, byHand.Run("web"))
	d := w.desired("web", values{"broken": true})
	d.Options.Atomic = true
	result, err := w.try(t.Context(), d)
	require.Error(t, err)
	assert.Contains(t, result.Altered, 6)
	w.assertNoBinding()
}

// K47: neither the status nor an alarm may go by a try that was not recorded.
func TestEnsure_notesNoInstallThatWasNotRecorded(t *testing.T) {
	cases := map[string]func(*world) (release.Desired, func()){
		"NotRendered": func(w *world) (release.Desired, func()) {
			return w.template("{{ fail \"no\" }}"), func() {}
		},
		"RecordRefused": func(w *world) (release.Desired, func()) {
			return w.template(plain), w.refuse(records)
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.try(t.Context(), w.template(plain+broken))
			require.Error(t, err)
			noted := w.known["one"]
			d, allow := prepare(w)
			result, err := w.try(t.Context(), d)
			require.Error(t, err)
			assert.Empty(t, result.Release)
			assert.False(t, result.Gone, "the release is as it was")
			assert.Equal(t, noted, w.known["one"])
			assert.Equal(t, []string{"1 failed"}, w.revisions("one"))

			allow()
			result = w.ensure(w.template(plain))
			assert.Empty(t, result.Altered)
			assert.EqualValues(t, 2, result.Release.Revision)
		})
	}
}

// K47, K53: what a failed upgrade left, and could not be deleted after the next one, is not forgotten.
func TestEnsure_triesAgainToRemoveWhatAFailedUpgradeLeft(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	w.failing(values{"extra": true}, 0)
	allow := w.refuse(deletes)
	next := w.desired("web", values{"replicas": 2})
	_, err := w.try(t.Context(), next)
	require.ErrorContains(t, err, "kept by a test")
	assert.Equal(t, []string{"1 superseded", "2 failed", "3 failed"}, w.revisions("web"))
	assert.EqualValues(t, 1, w.known["web"].Fallback.Revision)
	allow()
	result := w.ensure(next)
	assert.Equal(t, release.ActionUpgrade, result.Action)
	assert.False(t, w.has("web-extra"))
	assert.Equal(t, release.ActionNone, w.ensure(next).Action)
}
