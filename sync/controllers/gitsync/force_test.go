package gitsync_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C66: spec.adopt and spec.force take effect when they are set, without another commit.
func TestGitSync_adoptsAndForces(t *testing.T) {
	secret := func(kind string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: token}\ntype: " + kind + "\n"
	}
	w := newWorld(t)
	foreign := &corev1.ConfigMap{ObjectMeta: named("settings"), Data: map[string]string{"key": "foreign"}}
	w.Create(foreign)
	w.commit(map[string]string{"settings.yaml": configMap("settings", "ours"), "token.yaml": secret("a")})
	gs := w.sync(nil)
	assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason), "1 of 2 objects cannot be applied: settings.yaml:1: ConfigMap ")
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.Adopt = true })
	hub.AwaitReady(w.World, gs)
	require.True(t, w.Exists(foreign, "settings"))
	assert.Equal(t, "ours", foreign.Data["key"])

	token := &corev1.Secret{}
	require.True(t, w.Exists(token, "token"))
	before := token.UID
	w.commit(map[string]string{"token.yaml": secret("b")})
	hub.Reconcile(w.World, gs)
	assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason), "immutable")
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.Force = true })
	hub.AwaitReady(w.World, gs)
	require.True(t, w.Exists(token, "token"))
	assert.NotEqual(t, before, token.UID)
	assert.Equal(t, corev1.SecretType("b"), token.Type)
	w.awaitEvent(v1alpha1.RecreatedReason, "Secret "+w.Namespace+"/token")
}

// awaitEvent waits for an event with a text.
func (w *world) awaitEvent(reason, text string) {
	w.T.Helper()
	require.True(w.T, w.Eventually(func() bool {
		list := &eventsv1.EventList{}
		require.NoError(w.T, w.Client.List(w.T.Context(), list, client.InNamespace(w.Namespace)))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == reason && strings.Contains(e.Note, text) })
	}), "no event %s tells of %s", reason, text)
}

// Hooks and waves of Argo CD are not run, which is said.
func TestGitSync_saysWhichAnnotationsItIgnores(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{
		"hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hook\n  annotations: {argocd.argoproj.io/hook: PreSync}\n",
		"wave.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: wave\n  annotations: {argocd.argoproj.io/sync-wave: \"1\"}\n",
	})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	assert.Contains(t, conditions.GetMessage(gs, v1alpha1.ReadyCondition),
		"; hook.yaml:1: ConfigMap hook: annotation argocd.argoproj.io/hook ignored: the object is applied with all others, and neither hooks nor waves are run (and 1 more)")
}
