package gitsync_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// user is a user cluster that the hub of a world knows as a KubernetesCluster.
type user struct {
	*hub.World
	gate *env.Gate
	key  types.NamespacedName
}

// addClusters makes user clusters of one API server that is shared by all tests, each with a
// gate of its own in front, so that one can be lost without the other. They are labelled
// `pool: <name>` and `all: yes`.
func (w *world) addClusters(names ...string) map[string]*user {
	w.T.Helper()
	return w.addHeldClusters(nil, names...)
}

// addHeldClusters is like addClusters, with holds of requests to some of them.
func (w *world) addHeldClusters(holds map[string]*hold, names ...string) map[string]*user {
	w.T.Helper()
	users := map[string]*user{}
	for _, name := range names {
		w.Create(kubernetesCluster(name))
		users[name] = w.connect(name, holds[name])
	}
	// The ServiceAccount that the GitSync acts as is the tenant's, in the user cluster too.
	hub.NewWorldIn(w.T, env.Shared(w.T, userCluster), w.Namespace).Allow("default", "cluster-admin")
	return users
}

var userCluster = env.Options{Name: "user"}

func kubernetesCluster(name string) *v1alpha1.KubernetesCluster {
	return &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": name, "all": "yes"}}}
}

// connect engages the user cluster under the name of a KubernetesCluster. held may be nil.
func (w *world) connect(name string, held *hold) *user {
	w.T.Helper()
	c := env.Shared(w.T, userCluster)
	gate, err := env.NewGate(c.Address())
	require.NoError(w.T, err)
	w.T.Cleanup(gate.Close)
	u := &user{World: hub.NewWorld(w.T, c), gate: gate, key: types.NamespacedName{Namespace: w.Namespace, Name: name}}
	config, err := c.AddUser(hub.Identity, "system:masters")
	require.NoError(w.T, err)
	if held != nil {
		config.Wrap(held.wrap)
	}
	w.process.Clusters.Ensure(u.key, name, env.Via(gate, config))
	w.T.Cleanup(func() { w.process.Clusters.Remove(u.key) })
	return u
}

// in makes a GitSync deliver to the clusters with a label.
func in(key, value string) func(*v1alpha1.GitSyncSpec) {
	return func(s *v1alpha1.GitSyncSpec) {
		s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func namespaceManifest(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n"
}

// P11, C37
func TestGitSync_deliversToSelectedClustersAndLeavesThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	users := w.addClusters("berlin")
	name := w.Namespace + "-delivered"
	w.commit(map[string]string{"ns.yaml": namespaceManifest(name)})
	gs := hub.AwaitReady(w.World, w.sync(in("pool", "berlin")))
	berlin := users["berlin"]
	require.True(t, berlin.ExistsIn("", &corev1.Namespace{}, name))
	require.Len(t, gs.Status.Clusters, 1)
	assert.Equal(t, "berlin", gs.Status.Clusters[0].Name)
	assert.True(t, gs.Status.Clusters[0].Ready)
	assert.False(t, w.ExistsIn("", &corev1.Namespace{}, name), "not into its own cluster")

	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "berlin"}}
	hub.Change(w.World, kc, func(k *v1alpha1.KubernetesCluster) { k.Labels["pool"] = "other" })
	require.True(t, berlin.Eventually(func() bool { return !berlin.ExistsIn("", &corev1.Namespace{}, name) }),
		"a cluster that is no longer selected is left without a trace")
	hub.Await(w.World, gs, "the cluster is forgotten", func(gs *v1alpha1.GitSync) bool { return len(gs.Status.Clusters) == 0 })
}

func TestGitSync_deadClusterHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, die := range map[string]func(*env.Gate) error{
		"refuses connections":       func(g *env.Gate) error { g.Shut(); return nil },
		"accepts and never answers": func(g *env.Gate) error { return g.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			users := w.addClusters("alive", "dead")
			w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
			gs := hub.AwaitReady(w.World, w.sync(in("pool", "alive")))
			require.NoError(t, die(users["dead"].gate))

			hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { in("all", "yes")(&gs.Spec) })
			w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "two")})
			hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) {
				metav1.SetMetaDataAnnotation(&gs.ObjectMeta, v1alpha1.ReconcileAtAnnotation, "now")
			})
			alive := users["alive"]
			require.True(t, alive.Eventually(func() bool {
				cm := &corev1.ConfigMap{}
				return alive.ExistsIn(w.Namespace, cm, "a") && cm.Data["key"] == "two"
			}), "the cluster that lives is delivered to")
			assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.ClusterUnreachableReason), "dead")
		})
	}
}

// P11: what a cluster has is reported while another is still at work, and not only when all are done.
func TestGitSync_slowClusterHidesNoOther(t *testing.T) {
	w := newWorld(t)
	held := newHold(t, "configmaps/b")
	w.addHeldClusters(map[string]*hold{"slow": held}, "quick", "slow")
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(in("all", "yes")))

	commit := w.commit(map[string]string{"b.yaml": configMapIn(w.Namespace, "b", "one")})
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) {
		metav1.SetMetaDataAnnotation(&gs.ObjectMeta, v1alpha1.ReconcileAtAnnotation, "now")
	})
	hub.Await(w.World, gs, "the quick cluster is not told of before the slow one", func(gs *v1alpha1.GitSync) bool {
		quick, slow := gs.Status.Clusters[0], gs.Status.Clusters[1]
		return quick.Ready && strings.HasSuffix(quick.Revision, commit) && !slow.Ready && slow.Reason == v1alpha1.ProgressingReason
	})
	held.release()
	hub.Await(w.World, gs, "the slow cluster never gets there", func(gs *v1alpha1.GitSync) bool {
		return conditions.IsReady(gs) && gs.Status.Clusters[1].Ready && strings.HasSuffix(gs.Status.Revision, commit)
	})
}

func TestGitSync_clusterThatReturnsCatchesUp(t *testing.T) {
	w := newWorld(t)
	users := w.addClusters("berlin")
	berlin := users["berlin"]
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(in("pool", "berlin")))
	berlin.gate.Shut()
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "two")})
	hub.Reconcile(w.World, gs)
	hub.AwaitReason(w.World, gs, v1alpha1.ClusterUnreachableReason)

	require.NoError(t, berlin.gate.Open())
	hub.AwaitReady(w.World, gs)
	cm := &corev1.ConfigMap{}
	require.True(t, berlin.ExistsIn(w.Namespace, cm, "a"))
	assert.Equal(t, "two", cm.Data["key"])
}

// C41, C38: that a cluster is delivered to is in the status before anything is made there, also if
// what is delivered is known from another cluster.
func TestGitSync_namesAClusterBeforeItDelivers(t *testing.T) {
	w := newWorld(t)
	held := newHold(t, "configmaps/a")
	w.addHeldClusters(map[string]*hold{"second": held}, "first", "second")
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(in("pool", "first")))

	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { in("all", "yes")(&gs.Spec) })
	env.Receive(t, held.asked, "nothing is delivered to the second cluster")
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(gs), gs))
	require.Equal(t, "first second", namesOf(gs))
	assert.True(t, gs.Status.Clusters[0].Ready)
	assert.Equal(t, v1alpha1.ProgressingReason, gs.Status.Clusters[1].Reason)
	held.release()
	w.awaitClusters(gs, "first second")
}

// P11: how a delivery failed that was under way when a cluster was lost counts no more when it is
// back: no back-off is waited for.
func TestGitSync_clusterThatReturnsIsNotToldItsOldFailure(t *testing.T) {
	c := env.Start(t, env.Options{Name: "returns", CRDs: []string{crds}})
	process := hub.Start(t, c, patient)
	t.Cleanup(process.Stop)
	w := makeWorld(t, c, process)
	gs, berlin, release := w.heldDelivery()
	berlin.gate.Shut()
	process.Clusters.Probe(berlin.key)
	hub.AwaitReason(w.World, gs, v1alpha1.ClusterUnreachableReason)
	release()
	require.NoError(t, berlin.gate.Open())
	process.Clusters.Probe(berlin.key)
	hub.AwaitReady(w.World, gs)
	assert.True(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
}

// P12: a cluster that is lost hides what was wrong there: it may long be otherwise in git.
func TestGitSync_lostClusterIsSaidRatherThanItsOldProblems(t *testing.T) {
	w := newWorld(t)
	users := w.addClusters("berlin")
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one"), "bad.yaml": configMapIn(w.Namespace, "NOT-A-NAME", "one")})
	gs := w.sync(in("pool", "berlin"))
	hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason)
	users["berlin"].gate.Shut()
	w.process.Clusters.Probe(users["berlin"].key)
	got := hub.Await(w.World, gs, "the lost cluster is not said", func(gs *v1alpha1.GitSync) bool {
		return conditions.GetReason(gs, v1alpha1.ReadyCondition) == v1alpha1.ClusterUnreachableReason
	})
	assert.Empty(t, got.Status.Problems)
}

// Deleting waits for a cluster that is lost, says so, and goes on when that is given up.
func TestGitSync_deletionWaitsForALostCluster(t *testing.T) {
	w := newWorld(t)
	users := w.addClusters("berlin")
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(in("pool", "berlin")))
	users["berlin"].gate.Shut()
	require.True(t, w.Eventually(func() bool { _, err := w.process.Clusters.Get(users["berlin"].key); return err != nil }))
	require.NoError(t, w.Client.Delete(t.Context(), gs))
	hub.AwaitReason(w.World, gs, v1alpha1.ClusterUnreachableReason)

	require.NoError(t, w.Client.Delete(t.Context(), &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "berlin"}}))
	w.AwaitGone(&v1alpha1.GitSync{}, gs.Name)
}

// The process killed and started again takes up what it had delivered.
func TestGitSync_survivesARestart(t *testing.T) {
	c := env.Start(t, env.Options{Name: "restart", CRDs: []string{crds}})
	first := hub.Start(t, c, setup)
	w := makeWorld(t, c, first)
	w.commit(map[string]string{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	first.Stop()

	w.remove("b.yaml")
	require.NoError(t, w.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "a"}}))
	second := hub.Start(t, c, setup)
	t.Cleanup(second.Stop)
	w.AwaitThere(&corev1.ConfigMap{}, "a")
	w.AwaitGone(&corev1.ConfigMap{}, "b")
	hub.AwaitReady(w.World, gs)
	require.NoError(t, w.Client.Delete(t.Context(), gs))
	w.AwaitGone(&v1alpha1.GitSync{}, gs.Name)
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "a"))
}

func configMapIn(namespace, name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: " + namespace + "\ndata:\n  key: " + value + "\n"
}
