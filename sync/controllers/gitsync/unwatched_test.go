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

// C37, C53: what an account may not watch is corrected at each look at the repository, and without
// its server too; and that it is not at once is reported.
func TestGitSync_looksAtWhatItMayNotWatch(t *testing.T) {
	w := newWorld(t)
	w.allowConfigMaps(w.Namespace, "get", "create", "update", "patch", "delete")
	w.commit(map[string]string{"a.yaml": configMap("a", "wanted")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) {
		s.ServiceAccountName = "tenant"
		s.Interval.Duration = time.Second
	}))
	message := conditions.GetMessage(gs, v1alpha1.ReadyCondition)
	assert.Contains(t, message, "corrected only at the next reconciliation")
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
