package release_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/sync/deliver/release"
)

func (w *world) has(configMap string) bool {
	w.Helper()
	_, err := w.configMap(configMap)
	if !apierrors.IsNotFound(err) {
		require.NoError(w, err)
	}
	return err == nil
}

// K47: an install that never succeeds keeps no more tries than any release, and loses sight of nothing that they have made.
func TestEnsure_limitsTheHistoryOfAnInstallThatFails(t *testing.T) {
	w := newWorld(t)
	try := func(name string) {
		d := w.template(configMap(name, "a") + broken)
		d.Options.HistoryLimit = 2
		_, err := w.try(t.Context(), d)
		require.Error(t, err)
	}
	for i := range 4 {
		try(fmt.Sprintf("try-%d", i+1))
	}
	assert.Equal(t, []string{"3 failed", "4 failed"}, w.revisions("one"))
	assert.False(t, w.has("try-2"), "the only record that names it is gone")
	assert.True(t, w.has("try-3"))
	w.ensure(w.template(plain))
	assert.Equal(t, []string{"3 failed", "4 failed", "5 deployed"}, w.revisions("one"))
	assert.False(t, w.has("try-3"))
	assert.False(t, w.has("try-4"))
}

// K47: so does a release whose upgrades fail. The revision that is deployed stays, and records that name nothing of their own go
// before those that do.
func TestEnsure_limitsTheHistoryOfUpgradesThatFail(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	w.failing(values{"extra": true}, 3)
	for range 3 {
		w.failing(values{}, 3)
	}
	assert.Equal(t, []string{"1 deployed", "2 failed", "5 failed"}, w.revisions("web"))
	assert.True(t, w.has("web-extra"), "it may be what is running")
	d := w.desired("web", values{"greeting": "bye"})
	d.Options.HistoryLimit = 1
	w.ensure(d)
	assert.Equal(t, []string{"1 superseded", "6 deployed"}, w.revisions("web"), "the deployed one stays until there is another")
	assert.False(t, w.has("web-extra"))
}

// K47, K53: an upgrade that fails takes nothing from what is running, however many have failed before it.
func TestEnsure_makesNoRoomAtTheCostOfWhatIsDeployed(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"extra": true}))
	w.failing(values{"extra": true}, 2)
	w.failing(values{}, 2)
	assert.Equal(t, []string{"1 deployed", "3 failed"}, w.revisions("web"))
	assert.True(t, w.has("web-extra"), "the deployed revision contains it")
	w.ensure(w.desired("web", nil))
	assert.False(t, w.has("web-extra"))
}

// K47: what cannot be deleted for the sake of the limit holds nothing up.
func TestEnsure_keepsARecordWhoseObjectsCannotBeDeleted(t *testing.T) {
	w := newWorld(t)
	w.failing(values{"extra": true}, 1)
	allow := w.refuse(deletes)
	result := w.failing(values{}, 1)
	require.Len(t, result.Warnings, 1)
	assert.Contains(t, result.Warnings[0], "kept revision 1 beyond the history limit: delete ConfigMap "+w.namespace+"/web-extra: ")
	assert.Contains(t, result.Warnings[0], "kept by a test")
	assert.Equal(t, []string{"1 failed", "2 failed"}, w.revisions("web"), "the only record of an object goes after the object")
	allow()
	result = w.failing(values{}, 1)
	assert.Empty(t, result.Warnings)
	assert.Equal(t, []string{"3 failed"}, w.revisions("web"))
	assert.False(t, w.has("web-extra"))
}

func TestRollback_goesBackWithAFullHistoryAndObjectsThatCannotBeDeleted(t *testing.T) {
	w := newWorld(t)
	options := release.Options{HistoryLimit: 2}
	w.ensure(w.desired("web", values{"greeting": "one"}))
	w.ensure(w.desired("web", values{"greeting": "two", "extra": true}))
	allow := w.refuse(deletes)
	result, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), options, release.Verdict{Why: "not healthy"})
	require.ErrorContains(t, err, "kept by a test")
	w.known["web"] = result.Release
	assert.Equal(t, []string{"1 superseded", "2 failed", "3 failed"}, w.revisions("web"))
	config, err := w.configMap("web")
	require.NoError(t, err)
	assert.Equal(t, "one", config.Data["greeting"], "what works is back")

	allow()
	_, err = w.engine.Rollback(t.Context(), w.target, w.identity("web"), options, release.Verdict{Why: "not healthy"})
	require.NoError(t, err)
	assert.Equal(t, []string{"1 superseded", "4 deployed"}, w.revisions("web"))
	assert.False(t, w.has("web-extra"))
}
