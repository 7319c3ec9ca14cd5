package gitsync_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C37, C53: what an account may not watch is put right at each look at the repository, and without
// its server too; and it is told that it is not at once.
func TestGitSync_looksAtWhatItMayNotWatch(t *testing.T) {
	w := newWorld(t)
	w.allowConfigMaps(w.Namespace, "get", "create", "update", "patch", "delete")
	w.commit(map[string]string{"a.yaml": configMap("a", "wanted")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) {
		s.ServiceAccountName = "tenant"
		s.Interval.Duration = time.Second
	}))
	message := conditions.GetMessage(gs, v1alpha1.ReadyCondition)
	assert.Contains(t, message, "put right only at the next reconciliation")
	assert.Contains(t, message, `cannot list resource "configmaps"`)

	for _, when := range []string{"at the interval", "without the server"} {
		cm := &corev1.ConfigMap{}
		require.True(t, w.Exists(cm, "a"))
		cm.Data["key"] = "edited"
		require.NoError(t, w.Client.Update(t.Context(), cm))
		require.True(t, w.Eventually(func() bool { return w.Exists(cm, "a") && cm.Data["key"] == "wanted" }), when)
		w.server.Shut()
	}
}

// P9, P12: what has left the repository stays while a manifest is not applied, and that is told.
func TestGitSync_tellsWhatStaysBecauseOfABadManifest(t *testing.T) {
	cases := map[string]struct{ reason, manifest, want string }{
		"no manifest": {"what it held is not known", "a: [", v1alpha1.InvalidManifestReason},
		"refused":     {"it may replace what has left", "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 0}]}\n", v1alpha1.ApplyFailedReason},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(map[string]string{"a.yaml": configMap("a", "x"), "b.yaml": configMap("b", "x")})
			gs := hub.AwaitReady(w.World, w.sync(nil))
			w.commit(map[string]string{"bad.yaml": c.manifest})
			w.remove("b.yaml")
			hub.Reconcile(w.World, gs)
			assert.Contains(t, hub.AwaitReason(w.World, gs, c.want), "1 objects stay that may not be wanted any more", c.reason)
			assert.True(t, w.Exists(&corev1.ConfigMap{}, "b"))

			w.remove("bad.yaml")
			hub.AwaitReady(w.World, hub.Reconcile(w.World, gs))
			assert.False(t, w.Exists(&corev1.ConfigMap{}, "b"))
		})
	}
}
