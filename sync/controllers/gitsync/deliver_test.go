package gitsync_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// P6, P9, C53
func TestGitSync_followsTheRepository(t *testing.T) {
	w := newWorld(t)
	commit := w.commit(map[string]string{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	gs := hub.AwaitReady(w.World, w.sync(nil))

	a := &corev1.ConfigMap{}
	require.True(t, w.Exists(a, "a"))
	assert.Equal(t, "one", a.Data["key"])
	assert.NotEmpty(t, a.Labels[v1alpha1.OwnerHashLabel])
	assert.Contains(t, a.Annotations[v1alpha1.OwnerAnnotation], "/"+w.Namespace+"/apps")
	assert.Contains(t, gs.Status.Revision, commit)
	assert.EqualValues(t, 2, gs.Status.Inventory.Count)
	check.NewInProgressChecker(w.Client).CheckErr(t.Context(), gs)

	w.commit(map[string]string{"a.yaml": configMap("a", "two")})
	gs = hub.Reconcile(w.World, gs)
	require.True(t, w.Exists(a, "a"))
	assert.Equal(t, "two", a.Data["key"], "an upgrade by commit")

	w.remove("b.yaml")
	gs = hub.Reconcile(w.World, gs)
	w.AwaitGone(&corev1.ConfigMap{}, "b")
	assert.EqualValues(t, 1, hub.AwaitReady(w.World, gs).Status.Inventory.Count, "a removal by commit")
}

// P7
func TestGitSync_deliversDefinitions(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"web.yaml": `
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata:
  name: ` + w.Namespace + `-web
spec:
  versions:
  - version: 1.0.0
    template:
      source:
        helm: {url: "https://charts.example.com", chartName: web, chartVersion: 1.0.0}
`})
	hub.AwaitReady(w.World, w.sync(nil))
	definition := &v1alpha1.ApplicationDefinition{}
	require.True(t, w.ExistsIn("", definition, w.Namespace+"-web"))
	assert.Equal(t, v1alpha1.MethodHelm, definition.GetMethod())
}

func TestGitSync_rendersAKustomization(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{
		"base/kustomization.yaml":   "resources: [cm.yaml]\n",
		"base/cm.yaml":              configMap("base", "x"),
		"prod/kustomization.yaml":   "resources: [../base]\nnamePrefix: prod-\n",
		"prod/not-a-resource.txt":   "ignored",
		"elsewhere/unrelated.yaml":  configMap("unrelated", "x"),
		"elsewhere/kustomize-x.yml": configMap("unrelated-too", "x"),
	})
	hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.Path = "prod" }))
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "prod-base"))
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "unrelated"), "outside of spec.path")
}

// C59
func TestGitSync_fillsInTheTargetNamespace(t *testing.T) {
	w := newWorld(t)
	other := w.Cluster.Namespace(t)
	named := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: named, namespace: " + w.Namespace + "}\n"
	w.commit(map[string]string{"a.yaml": configMap("unnamed", "x"), "b.yaml": named})
	hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.TargetNamespace = other }))

	assert.True(t, w.Exists(&corev1.ConfigMap{}, "named"), "a namespace in the manifest stands")
	cm := &corev1.ConfigMap{}
	require.True(t, w.ExistsIn(other, cm, "unnamed"))
}

func TestGitSync_suspendedDoesNothing(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.Suspend = true })
	hub.AwaitReason(w.World, gs, v1alpha1.SuspendedReason)

	w.commit(map[string]string{"a.yaml": configMap("a", "two")})
	hub.Reconcile(w.World, gs)
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "a"))
	assert.Equal(t, "one", cm.Data["key"])

	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.Suspend = false })
	hub.AwaitReady(w.World, gs)
	require.True(t, w.Exists(cm, "a"))
	assert.Equal(t, "two", cm.Data["key"], "resuming catches up")
}

func TestGitSync_deletionTakesEverythingAlong(t *testing.T) {
	cases := map[string]struct {
		reason string
		prune  bool
	}{
		"prune":    {"what was delivered goes with the GitSync", true},
		"no prune": {"what was delivered stays where spec.prune is false", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(map[string]string{"a.yaml": configMap("a", "one")})
			gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.Prune = &c.prune }))
			require.NoError(t, w.Client.Delete(t.Context(), gs))
			w.AwaitGone(&v1alpha1.GitSync{}, gs.Name)
			assert.Equal(t, !c.prune, w.Exists(&corev1.ConfigMap{}, "a"), c.reason)
		})
	}
}

// A namespace that is being deleted takes its GitSync along.
func TestGitSync_survivesTheEndOfItsNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "one")})
	hub.AwaitReady(w.World, w.sync(nil))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	require.NoError(t, w.Client.Delete(t.Context(), namespace))
	require.True(t, w.Eventually(func() bool {
		return !w.ExistsIn("", namespace, w.Namespace)
	}), "the namespace does not go")
}
