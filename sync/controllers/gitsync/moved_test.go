package gitsync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// installationInto is the manifest of an installation `web`.
func installationInto(namespace, target string) string {
	return "apiVersion: " + v1alpha1.GroupVersion.String() + "\nkind: ApplicationInstallation\nmetadata: {name: web, namespace: " + namespace + "}\n" +
		"spec:\n  applicationRef: {name: web, version: 1.0.0}\n  namespace: {name: " + target + "}\n"
}

// P9, P12: one commit moves an installation to another file, to another namespace, or to another target namespace. The
// first two are what they look like. The last is a change that the API server refuses: that is said with the way out, which then works.
func TestGitSync_movesAnInstallation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := w.Cluster.Namespace(t)
	inst, moved := &v1alpha1.ApplicationInstallation{}, &v1alpha1.ApplicationInstallation{}
	move := func(from, to, manifest string) {
		t.Helper()
		_, err := w.repo.Git(t.Context(), "rm", "--quiet", from)
		require.NoError(t, err)
		w.commit(map[string]string{to: manifest})
	}
	w.commit(map[string]string{"a/web.yaml": installationInto(w.Namespace, "shop")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	require.True(t, w.Exists(inst, "web"))

	move("a/web.yaml", "b/web.yaml", installationInto(w.Namespace, "shop"))
	hub.Reconcile(w.World, gs)
	hub.AwaitReady(w.World, gs)
	require.True(t, w.Exists(moved, "web"))
	assert.Equal(t, inst.UID, moved.UID, "to another file")

	move("b/web.yaml", "c/web.yaml", installationInto(w.Namespace, "blog"))
	hub.Reconcile(w.World, gs)
	message := hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason)
	assert.Contains(t, message, "namespace.name is immutable: delete and recreate the installation")
	require.True(t, w.Exists(moved, "web"))
	assert.Equal(t, inst.UID, moved.UID, "what it has installed stays")
	require.NoError(t, w.Client.Delete(t.Context(), moved))
	hub.AwaitReady(w.World, gs)
	require.True(t, w.Exists(moved, "web"))
	assert.Equal(t, "blog", moved.Spec.Namespace.Name)

	move("c/web.yaml", "d/web.yaml", installationInto(elsewhere, "blog"))
	hub.Reconcile(w.World, gs)
	hub.AwaitReady(w.World, gs)
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: elsewhere, Name: "web"}, moved))
}
