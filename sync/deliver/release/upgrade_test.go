package release_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/deliver/release"
)

// K47, K50: another revision, with few requests.
func TestEnsure_upgrades(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"extra": true}))
	var result release.Result
	requests := w.calls(func() { result = w.ensure(w.desired("web", values{"replicas": 3})) })
	assert.LessOrEqual(t, len(requests), 14, "requests for an upgrade that changes one object of four and deletes a fifth")
	assert.Equal(t, release.ActionUpgrade, result.Action)
	assert.EqualValues(t, 2, result.Release.Revision)
	assert.Equal(t, []string{"1 superseded", "2 deployed"}, w.revisions("web"))
	deployment, err := w.client.AppsV1().Deployments(w.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 3, *deployment.Spec.Replicas)
	_, err = w.configMap("web-extra")
	assert.True(t, apierrors.IsNotFound(err))
}

// Values that are taken away do not come back from the last revision.
func TestEnsure_upgradesToNoValues(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"greeting": "hi"}))
	w.ensure(w.desired("web", nil))
	config, err := w.configMap("web")
	require.NoError(t, err)
	assert.Equal(t, "hello", config.Data["greeting"])
}

func TestEnsure_keepsWhatAsksToBeKept(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"extra": true, "keep": true}))
	result := w.ensure(w.desired("web", nil))
	require.Len(t, result.Kept, 1)
	assert.Equal(t, "web-extra", result.Kept[0].ID.Name)
	assert.Contains(t, result.Kept[0].Why, "helm.sh/resource-policy")
	_, err := w.configMap("web-extra")
	require.NoError(t, err)
}

func TestEnsure_limitsTheHistory(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		d := w.desired("web", values{"replicas": i})
		d.Options.HistoryLimit = 2
		w.ensure(d)
	}
	assert.Equal(t, []string{"3 superseded", "4 deployed"}, w.revisions("web"))
}

// A revision that a user made is not mistaken for ours, whatever labels it has inherited.
func TestEnsure_upgradesWhatSomebodyElseHasMade(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"greeting": "one"}))
	w.ensure(w.desired("web", values{"greeting": "two"}))
	w.helmRollback("web")
	config, err := w.configMap("web")
	require.NoError(t, err)
	require.Equal(t, "one", config.Data["greeting"])

	result := w.ensure(w.desired("web", values{"greeting": "one"}))
	assert.Equal(t, release.ActionUpgrade, result.Action)
	assert.EqualValues(t, 4, result.Release.Revision)
}

// A failed upgrade leaves the last good revision deployed; what it made that is not wanted goes with the next success.
func TestEnsure_recoversFromAFailedUpgrade(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	_, err := w.try(t.Context(), w.desired("web", values{"broken": true, "extra": true}))
	require.Error(t, err)
	assert.True(t, release.IsTerminal(err))
	assert.Equal(t, []string{"1 deployed", "2 failed"}, w.revisions("web"))
	_, err = w.configMap("web-extra")
	require.NoError(t, err)

	result := w.ensure(w.desired("web", values{"replicas": 2}))
	assert.Equal(t, release.ActionUpgrade, result.Action)
	assert.Equal(t, []string{"1 superseded", "2 failed", "3 deployed"}, w.revisions("web"))
	_, err = w.configMap("web-extra")
	assert.True(t, apierrors.IsNotFound(err))
}

func TestEnsure_atomicRollsAFailedUpgradeBack(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	d := w.desired("web", values{"broken": true, "greeting": "changed"})
	d.Options.Atomic = true
	_, err := w.try(t.Context(), d)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "and was rolled back")
	config, err := w.configMap("web")
	require.NoError(t, err)
	assert.Equal(t, "hello", config.Data["greeting"])
	assert.Equal(t, []string{"1 superseded", "2 failed", "3 deployed"}, w.revisions("web"))
}

// What Atomic means once objects do not become healthy in time.
func TestRollback_goesBackToTheLastGoodRevision(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"greeting": "one"}))
	w.ensure(w.desired("web", values{"greeting": "two", "extra": true}))
	result, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, release.Verdict{Why: "Deployment web is not healthy"})
	require.NoError(t, err)
	assert.EqualValues(t, 3, result.Release.Revision)
	assert.Len(t, result.Objects, 4)
	assert.Equal(t, []string{"1 superseded", "2 failed", "3 deployed"}, w.revisions("web"))
	config, err := w.configMap("web")
	require.NoError(t, err)
	assert.Equal(t, "one", config.Data["greeting"])
	_, err = w.configMap("web-extra")
	assert.True(t, apierrors.IsNotFound(err))
}

// K47: who looks once more may find that all is well; once the verdict is recorded, it stands.
func TestRollback_asksOnceMore(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"greeting": "one"}))
	w.ensure(w.desired("web", values{"greeting": "two"}))
	well := errors.New("it is healthy")
	verdict := release.Verdict{Why: "not healthy", Confirm: func(context.Context) error { return well }}
	_, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, verdict)
	require.ErrorIs(t, err, well)
	assert.Equal(t, []string{"1 superseded", "2 deployed"}, w.revisions("web"))

	allow := w.refuse(greeting("one"))
	result, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, release.Verdict{Why: "not healthy"})
	require.Error(t, err)
	w.known["web"] = result.Release
	allow()
	_, err = w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, verdict)
	require.NoError(t, err)
	assert.Equal(t, "one", w.greeting())
}

func TestRollback_uninstallsAFirstInstall(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	_, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, release.Verdict{Why: "not healthy"})
	require.NoError(t, err)
	assert.Empty(t, w.revisions("web"))
	_, err = w.configMap("web")
	assert.True(t, apierrors.IsNotFound(err))
}

// K47, C54: a release that a kill -9 left pending
func TestEnsure_recoversPendingReleases(t *testing.T) {
	cases := map[string]struct {
		before []release.Desired
		status string
		want   []string
		action release.Action
	}{
		"Install": {nil, "pending-install", []string{"1 failed", "2 deployed"}, release.ActionInstall},
		"Upgrade": {[]release.Desired{{Values: values{"greeting": "old"}}}, "pending-upgrade", []string{"1 deployed", "2 failed", "3 deployed"}, release.ActionUpgrade},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, before := range tc.before {
				w.ensure(w.desired("web", before.Values))
			}
			d := w.desired("web", values{"greeting": "new"})
			w.leavePending(d, tc.status)
			result := w.ensure(d)
			assert.Equal(t, tc.action, result.Action)
			got := w.revisions("web")
			if len(tc.before) > 0 {
				tc.want[0] = "1 superseded"
			}
			assert.Equal(t, tc.want, got)
			config, err := w.configMap("web")
			require.NoError(t, err)
			assert.Equal(t, "new", config.Data["greeting"])
		})
	}
}

// A user who is upgrading by hand is not disturbed.
func TestEnsure_waitsForSomebodyElsesAction(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	w.label("sh.helm.release.v1.web.v1", map[string]string{"status": "pending-upgrade", "apps.waybill.dev/input": "0.x"})
	_, err := w.try(t.Context(), w.desired("web", values{"replicas": 2}))
	assert.Equal(t, release.ReasonBusy, release.ReasonOf(err))
	assert.Contains(t, err.Error(), "another Helm client is working on the release")
}

func (w *world) label(secret string, labels map[string]string) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	require.NoError(w, err)
	_, err = w.client.CoreV1().Secrets(w.namespace).Patch(w.Context(), secret, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w, err)
}
