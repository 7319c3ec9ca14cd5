package gitsync_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C40, C41: what the GitSync of a hub that was restored finds, of which its inventory knows nothing, is
// named for as long as it is there, and stays: a mark is no proof.
func TestGitSync_namesWhatItsInventoryDoesNotKnow(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "one"), "later.yaml": configMap("later", "one"), "next.yaml": configMap("next", "one")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.Prune = ptr.To(false) }))
	require.NoError(t, w.Client.Delete(t.Context(), gs))
	w.AwaitGone(&v1alpha1.GitSync{}, gs.Name)
	w.remove("later.yaml", "next.yaml")

	gs = hub.AwaitReady(w.World, w.sync(nil))
	stray := "ConfigMap " + w.Namespace + "/later: it carries the mark of this GitSync, and is in neither its source nor its inventory"
	assert.Contains(t, conditions.GetMessage(gs, v1alpha1.ReadyCondition), stray)
	assert.Contains(t, conditions.GetMessage(gs, v1alpha1.ReadyCondition), "(and 1 more: ConfigMap "+w.Namespace+"/next)", "none is left out")
	later := &corev1.ConfigMap{}
	require.True(t, w.Exists(later, "later"))
	require.NoError(t, w.Client.Delete(t.Context(), later))
	hub.Await(w.World, gs, "it is told no more", func(gs *v1alpha1.GitSync) bool {
		return conditions.IsReady(gs) && !strings.Contains(conditions.GetMessage(gs, v1alpha1.ReadyCondition), "later")
	})
}
