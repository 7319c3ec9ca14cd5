package gitsync_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// comesBack deletes a ConfigMap and waits until it is back with a value.
func (w *world) comesBack(name, value string) {
	w.T.Helper()
	w.deleteConfigMap(name)
	cm := &corev1.ConfigMap{}
	w.AwaitThere(cm, name)
	assert.Equal(w.T, value, cm.Data["key"])
}

func (w *world) deleteConfigMap(name string) {
	w.T.Helper()
	require.NoError(w.T, w.Client.Delete(w.T.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}))
}

// P13: what was delivered is corrected from where it came from, although the spec names another
// source by now, or other credentials, and the server hangs.
func TestGitSync_keepsWhatIsDeliveredWhileItsNextSourceHangs(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*testing.T, *world, *v1alpha1.GitSync)
	}{
		"Secret rotated": {"with other credentials there is another mirror", func(t *testing.T, w *world, _ *v1alpha1.GitSync) {
			hub.Change(w.World, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "git"}}, func(s *corev1.Secret) {
				s.Data["ca.crt"] = append(hub.Authority(t), '\n')
			})
		}},
		"address and path changed": {"the path is one of the other repository", func(_ *testing.T, w *world, gs *v1alpha1.GitSync) {
			hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) {
				gs.Spec.URL, gs.Spec.Path = strings.Replace(gs.Spec.URL, "apps", "other", 1), "b"
			})
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(map[string]string{"a/a.yaml": configMap("a", "x"), "b/b.yaml": configMap("b", "x")})
			gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) {
				s.Path, s.Timeout.Duration = "a", time.Hour
			}))
			require.NoError(t, w.server.Hang())
			c.change(t, w, gs)
			w.comesBack("a", "x")
			w.comesBack("a", "x")
			assert.False(t, w.Exists(&corev1.ConfigMap{}, "b"), c.reason)
		})
	}
}

// P13: what was delivered is corrected although the wanted state cannot be had.
func TestGitSync_keepsWhatIsDeliveredWithoutWhatIsWanted(t *testing.T) {
	secret := func(w *world) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "git"}}
	}
	cases := map[string]struct {
		change func(*world, *v1alpha1.GitSync)
		want   string
	}{
		"Secret gone": {func(w *world, _ *v1alpha1.GitSync) {
			require.NoError(w.T, w.Client.Delete(w.T.Context(), secret(w)))
		}, v1alpha1.SecretNotFoundReason},
		"Secret broken": {func(w *world, _ *v1alpha1.GitSync) {
			hub.Change(w.World, secret(w), func(s *corev1.Secret) { s.Data["identity"] = []byte("no key") })
		}, v1alpha1.InvalidSecretReason},
		"folder emptied": {func(w *world, gs *v1alpha1.GitSync) {
			w.commit(map[string]string{"apps/README.md": "nothing here"})
			w.remove("apps/a.yaml")
			hub.Reconcile(w.World, gs)
		}, v1alpha1.EmptyPathReason},
		"folder gone": {func(w *world, gs *v1alpha1.GitSync) {
			w.commit(map[string]string{"README.md": "nothing here"})
			w.remove("apps/a.yaml")
			hub.Reconcile(w.World, gs)
		}, v1alpha1.PathNotFoundReason},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(map[string]string{"apps/a.yaml": configMap("a", "x")})
			gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.Path = "apps" }))
			c.change(w, gs)
			hub.AwaitReason(w.World, gs, c.want)
			w.comesBack("a", "x")
			assert.Equal(t, c.want, w.reasonNow(gs))
			assert.NotContains(t, conditions.GetMessage(gs, v1alpha1.ReadyCondition), "drift correction is paused")
		})
	}
}

// P11, P13
func TestGitSync_leavesClustersWithoutWhatIsWanted(t *testing.T) {
	w := newWorld(t)
	berlin := w.addClusters("berlin")["berlin"]
	w.Create(&v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: "here", Labels: map[string]string{"all": "yes"}}})
	here := types.NamespacedName{Namespace: w.Namespace, Name: "here"}
	w.process.Clusters.Ensure(here, "", nil)
	t.Cleanup(func() { w.process.Clusters.Remove(here) })
	w.commit(map[string]string{"apps/a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { in("all", "yes")(s); s.Path = "apps" }))
	w.commit(map[string]string{"apps/README.md": "nothing here"})
	w.remove("apps/a.yaml")
	hub.Reconcile(w.World, gs)
	hub.AwaitReason(w.World, gs, v1alpha1.EmptyPathReason)

	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "berlin"}}
	hub.Change(w.World, kc, func(k *v1alpha1.KubernetesCluster) { k.Labels["all"] = "no" })
	hub.Await(w.World, gs, "the cluster is not left", func(gs *v1alpha1.GitSync) bool { return len(gs.Status.Clusters) == 1 })
	assert.False(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "a"))
}

// A cluster that was never delivered to is not ready.
func TestGitSync_clusterWithoutARevisionIsNotReady(t *testing.T) {
	w := newWorld(t)
	w.addClusters("berlin")
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := w.sync(func(s *v1alpha1.GitSyncSpec) { in("pool", "berlin")(s); s.Path = "nope" })
	hub.AwaitReason(w.World, gs, v1alpha1.PathNotFoundReason)
	hub.Reconcile(w.World, gs)
	require.Len(t, gs.Status.Clusters, 1)
	assert.False(t, gs.Status.Clusters[0].Ready)
}

// P13: what the mirror has lost is fetched again when it is needed, and the condition says so while
// the server hangs.
func TestGitSync_fetchesWhatTheMirrorHasLost(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "x")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.Timeout.Duration = time.Hour }))
	removed, err := w.process.Git.Sweep(0)
	require.NoError(t, err)
	require.Positive(t, removed)
	w.comesBack("a", "x")

	_, err = w.process.Git.Sweep(0)
	require.NoError(t, err)
	require.NoError(t, w.server.Hang())
	w.deleteConfigMap("a")
	assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.ProgressingReason), "drift correction is paused")
	require.NoError(t, w.server.Open())
	w.AwaitThere(&corev1.ConfigMap{}, "a")
	hub.AwaitReady(w.World, gs)
}

// P13: a check that began before it was known that the mirror has lost something does not bring that
// back, so another follows.
func TestGitSync_fetchesWhatTheMirrorHasLostAfterACheck(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "x")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.Timeout.Duration = time.Hour }))
	_, err := w.process.Git.Sweep(0)
	require.NoError(t, err)
	require.NoError(t, w.server.Hang())
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"} })
	w.deleteConfigMap("a")
	assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.ProgressingReason), "drift correction is paused")
	require.NoError(t, w.server.Open())
	w.AwaitThere(&corev1.ConfigMap{}, "a")
	hub.AwaitReady(w.World, gs)
}

// withStore makes a process keep its mirrors in a directory that outlives it.
func withStore(t *testing.T, dir string) hub.Setup {
	return func(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
		store, err := git.NewStore(dir)
		require.NoError(t, err)
		context.AfterFunc(ctx, func() { _ = store.Close() })
		s.Git = store
		return setup(ctx, mgr, s)
	}
}

// P13: after a start, what was delivered is corrected while the server hangs, from the mirror; and
// without a mirror, the condition says that it is not.
func TestGitSync_startsWhileItsServerHangs(t *testing.T) {
	c := env.Start(t, env.Options{Name: "hanging", CRDs: []string{crds}})
	mirrors := t.TempDir()
	first := hub.Start(t, c, withStore(t, mirrors))
	w := makeWorld(t, c, first)
	w.commit(map[string]string{"a.yaml": configMap("a", "x")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.Timeout.Duration = time.Hour }))
	first.Stop()
	require.NoError(t, w.server.Hang())

	w.deleteConfigMap("a")
	second := hub.Start(t, c, withStore(t, mirrors))
	w.AwaitThere(&corev1.ConfigMap{}, "a")
	w.comesBack("a", "x")
	hub.AwaitReady(w.World, gs)
	second.Stop()

	w.deleteConfigMap("a")
	third := hub.Start(t, c, setup)
	t.Cleanup(third.Stop)
	hub.Await(w.World, gs, "nothing says that it is not corrected", func(gs *v1alpha1.GitSync) bool {
		return strings.Contains(conditions.GetMessage(gs, v1alpha1.ReadyCondition), "drift correction is paused")
	})
	assert.Equal(t, v1alpha1.ProgressingReason, conditions.GetReason(gs, v1alpha1.ReadyCondition))
	require.NoError(t, w.server.Open())
	w.AwaitThere(&corev1.ConfigMap{}, "a")
	hub.AwaitReady(w.World, gs)
}

// newRestartedWorld returns a world on a hub whose processes the test starts itself; the first one
// runs, and has its mirrors in that directory.
func newRestartedWorld(t *testing.T, mirrors string) *world {
	t.Helper()
	c := env.Start(t, env.Options{Name: "restarted", Audit: true, CRDs: []string{crds}})
	w := makeWorld(t, c, hub.Start(t, c, withStore(t, mirrors)))
	t.Cleanup(func() { w.process.Stop() })
	return w
}

// restart replaces the process by one that has its mirrors in that directory.
func (w *world) restart(mirrors string) {
	w.T.Helper()
	w.process.Stop()
	w.process = hub.Start(w.T, w.Cluster, withStore(w.T, mirrors))
}

// P11, P12: what was delivered to a cluster is not forgotten when, after a start without the source,
// another cluster is left.
func TestGitSync_leavesAClusterAfterAStartWithoutItsSource(t *testing.T) {
	w := newRestartedWorld(t, t.TempDir())
	user := env.Shared(t, env.Options{Name: "user"})
	berlin := hub.NewWorldIn(t, user, w.Namespace)
	berlin.Allow("default", "cluster-admin")
	config, err := user.AddUser(hub.Identity, "system:masters")
	require.NoError(t, err)
	engage := func() {
		w.process.Clusters.Ensure(types.NamespacedName{Namespace: w.Namespace, Name: "here"}, "", nil)
		w.process.Clusters.Ensure(types.NamespacedName{Namespace: w.Namespace, Name: "berlin"}, "", config)
	}
	for _, name := range []string{"here", "berlin"} {
		w.Create(&v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"all": "yes"}}})
	}
	engage()
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(in("all", "yes")))
	require.NoError(t, w.server.Hang())
	w.restart(t.TempDir())
	engage()

	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "berlin"}}
	hub.Change(w.World, kc, func(k *v1alpha1.KubernetesCluster) { k.Labels["all"] = "no" })
	berlin.AwaitGone(&corev1.ConfigMap{}, "a")
	hub.Await(w.World, gs, "the cluster is not left", func(gs *v1alpha1.GitSync) bool { return len(gs.Status.Clusters) == 1 })
	require.True(t, w.Exists(&corev1.ConfigMap{}, "a"))
	require.NoError(t, w.Client.Delete(t.Context(), gs))
	w.AwaitGone(&v1alpha1.GitSync{}, gs.Name)
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "a"), "it is known what was delivered here")
}

// P12, P13: a path that could not be read yet is not looked for in the revision of the path before,
// which may hold something else there: nothing is pruned.
func TestGitSync_startsWhileItsNextPathCannotBeRead(t *testing.T) {
	mirrors := t.TempDir()
	w := newRestartedWorld(t, mirrors)
	w.commit(map[string]string{"all/a.yaml": configMap("a", "x"), "prod/b.yaml": configMap("b", "x")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.Path = "all" }))
	require.NoError(t, w.server.Hang())
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.Path, gs.Spec.Timeout.Duration = "prod", time.Second })
	hub.AwaitReason(w.World, gs, v1alpha1.GitUnreachableReason)
	assert.Empty(t, gs.Status.AttemptedRevision)

	w.restart(mirrors)
	hub.Reconcile(w.World, gs)
	hub.Reconcile(w.World, gs)
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "a"))
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "b"))
}
