package gitsync_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// requestsOf is what the controller asked of the API server because of a namespace, and got.
func (w *world) requestsOf(since env.AuditMark) []env.Request {
	w.T.Helper()
	got, err := w.Cluster.Requests(w.T.Context(), since, env.Calls, env.Accepted, func(r env.Request) bool {
		return strings.Contains(r.User, hub.Identity) && r.Namespace == w.Namespace && r.Resource != "events"
	})
	require.NoError(w.T, err)
	return got
}

func TestGitSync_costsNothingWhenNothingChanged(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{}
	for i := range 20 {
		name := fmt.Sprintf("cm-%d", i)
		files[name+".yaml"] = configMap(name, "x")
	}
	w.commit(files)
	gs := hub.AwaitReady(w.World, w.sync(nil))
	mark, err := w.Cluster.AuditMark(t.Context())
	require.NoError(t, err)
	hub.Reconcile(w.World, gs)

	got := w.requestsOf(mark)
	require.Len(t, got, 1, "one status write, and nothing else: %+v", got)
	assert.Equal(t, "gitsyncs", got[0].Resource)
	assert.Equal(t, "status", got[0].Subresource)
}

// C28: a restart applies nothing that has not changed meanwhile, and corrects what has.
func TestGitSync_restartAppliesWhatWasChanged(t *testing.T) {
	mirrors := t.TempDir()
	w := newRestartedWorld(t, mirrors)
	w.commit(map[string]string{"a.yaml": configMap("a", "x"), "b.yaml": configMap("b", "x")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	require.NotEmpty(t, gs.Status.AppliedDigest)
	mark, err := w.Cluster.AuditMark(t.Context())
	require.NoError(t, err)
	w.restart(mirrors)
	hub.Reconcile(w.World, gs)
	var writes []env.Request
	for _, r := range w.requestsOf(mark) {
		assert.NotEqual(t, "configmaps", r.Resource, r.URI)
		if env.Writes(r) {
			writes = append(writes, r)
		}
	}
	require.Len(t, writes, 1, "that the request was handled")
	assert.Equal(t, "status", writes[0].Subresource)

	w.process.Stop()
	hub.Change(w.World, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "a"}}, func(c *corev1.ConfigMap) { c.Data["key"] = "theirs" })
	w.restart(mirrors)
	hub.Reconcile(w.World, gs)
	found := &corev1.ConfigMap{}
	require.True(t, w.Eventually(func() bool { return w.Exists(found, "a") && found.Data["key"] == "x" }))
}

func TestGitSync_oneChangeIsOneRequest(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{}
	for i := range 20 {
		name := fmt.Sprintf("cm-%d", i)
		files[name+".yaml"] = configMap(name, "x")
	}
	w.commit(files)
	gs := hub.AwaitReady(w.World, w.sync(nil))
	w.commit(map[string]string{"cm-7.yaml": configMap("cm-7", "changed")})
	mark, err := w.Cluster.AuditMark(t.Context())
	require.NoError(t, err)
	hub.Reconcile(w.World, gs)
	hub.AwaitReady(w.World, gs)

	var objects []env.Request
	for _, r := range w.requestsOf(mark) {
		if r.Resource == "configmaps" {
			objects = append(objects, r)
		}
	}
	require.Len(t, objects, 1)
	assert.Equal(t, "cm-7", objects[0].Name)
}

func TestGitSync_putsDriftRight(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "wanted"), "b.yaml": configMap("b", "wanted")})
	hub.AwaitReady(w.World, w.sync(nil))

	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "a"))
	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "a")

	require.True(t, w.Exists(cm, "b"))
	cm.Data["key"], cm.Data["other"] = "edited", "theirs"
	require.NoError(t, w.Client.Update(t.Context(), cm))
	require.True(t, w.Eventually(func() bool { return w.Exists(cm, "b") && cm.Data["key"] == "wanted" }))
	assert.Equal(t, "theirs", cm.Data["other"], "what others add is no drift")
}

func TestGitSync_foreignObjectIsAConflict(t *testing.T) {
	w := newWorld(t)
	w.Create(&corev1.ConfigMap{ObjectMeta: named("a"), Data: map[string]string{"key": "theirs"}})
	w.commit(map[string]string{"a.yaml": configMap("a", "ours")})
	gs := w.sync(nil)
	assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason), v1alpha1.AdoptAnnotation, "the way out is named")
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "a"))
	assert.Equal(t, "theirs", cm.Data["key"])

	w.commit(map[string]string{"a.yaml": strings.Replace(configMap("a", "ours"), "metadata:", "metadata:\n  annotations: {"+v1alpha1.AdoptAnnotation+": \"true\"}", 1)})
	hub.Reconcile(w.World, gs)
	hub.AwaitReady(w.World, gs)
	require.True(t, w.Exists(cm, "a"))
	assert.Equal(t, "ours", cm.Data["key"])
}

// C53: the field manager that keeps changing what was delivered is named as the reason why it is corrected ever
// more slowly.
func TestGitSync_tellsOfAFight(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "wanted"), "b.yaml": configMap("b", "wanted")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	cm := &corev1.ConfigMap{}
	strike := func() {
		require.True(t, w.Exists(cm, "a"))
		cm.Data["key"] = "edited"
		require.NoError(t, w.Client.Update(t.Context(), cm))
		require.True(t, w.Eventually(func() bool { return w.Exists(cm, "a") && cm.Data["key"] == "wanted" }))
	}
	for range 4 {
		strike()
	}
	hub.Await(w.World, gs, "the fight is not told", func(gs *v1alpha1.GitSync) bool {
		return strings.Contains(conditions.GetMessage(gs, v1alpha1.ReadyCondition), "; ConfigMap "+w.Namespace+"/a: another field manager keeps changing")
	})
	require.True(t, conditions.IsReady(gs))
	strike()
}
