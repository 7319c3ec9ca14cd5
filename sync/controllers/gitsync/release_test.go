package gitsync_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/test/hub"
)

// viewOf is the hub as the controller sees it that acts as a ServiceAccount.
func (w *world) viewOf(account string) weak.Pointer[cluster.Cluster] {
	w.T.Helper()
	view, err := w.process.Clusters.Local().As("system:serviceaccount:" + w.Namespace + ":" + account)
	require.NoError(w.T, err)
	return weak.Make(view)
}

// inUse says whether any caller holds a view.
func inUse(view weak.Pointer[cluster.Cluster]) bool {
	runtime.GC()
	return view.Value() != nil
}

// C37: what is kept per identity goes with the last who acts as it.
func TestGitSync_letsGoOfIdentitiesThatNobodyActsAs(t *testing.T) {
	w := newWorld(t)
	w.Allow("other", "cluster-admin")
	w.commit(map[string]string{"a.yaml": configMap("a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	first := w.viewOf("default")
	require.True(t, inUse(first))

	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.ServiceAccountName = "other" })
	hub.AwaitReady(w.World, gs)
	require.True(t, w.Eventually(func() bool { return !inUse(first) }), "the identity that was replaced")
	second := w.viewOf("other")
	require.True(t, inUse(second))

	require.NoError(t, w.Client.Delete(t.Context(), gs))
	w.AwaitGone(gs, gs.Name)
	require.True(t, w.Eventually(func() bool { return !inUse(second) }), "the identity of a GitSync that is gone")
}
