package gitsync_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// P11, C34: clusters that are left at a time do not keep each other at work: what each of them
// waits for is reported, and nothing is done until it has happened.
func TestGitSync_leavesSeveralClustersAtATime(t *testing.T) {
	cases := map[string]struct {
		// leave makes the GitSync leave its clusters; over returns when it has left them.
		leave func(*world, *v1alpha1.GitSync)
		over  func(*world, *v1alpha1.GitSync)
	}{
		"deleted": {
			leave: func(w *world, gs *v1alpha1.GitSync) { require.NoError(w.T, w.Client.Delete(w.T.Context(), gs)) },
			over:  func(w *world, gs *v1alpha1.GitSync) { w.AwaitGone(&v1alpha1.GitSync{}, gs.Name) },
		},
		"deselected": {
			leave: func(w *world, gs *v1alpha1.GitSync) {
				hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { in("pool", "nowhere")(&gs.Spec) })
			},
			over: func(w *world, gs *v1alpha1.GitSync) {
				hub.AwaitReady(w.World, hub.Await(w.World, gs, "the clusters are left", func(gs *v1alpha1.GitSync) bool { return len(gs.Status.Clusters) == 0 }))
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			quick, slow := newHold(t, "configmaps/held"), newHold(t, "configmaps/held")
			quick.method, slow.method = http.MethodDelete, http.MethodDelete
			berlin := w.addHeldClusters(map[string]*hold{"quick": quick, "slow": slow}, "quick", "slow")["quick"]
			w.commit(map[string]string{"held.yaml": strings.Replace(configMapIn(w.Namespace, "held", "x"), "metadata:", "metadata:\n  finalizers: [example.com/hold]", 1)})
			gs := hub.AwaitReady(w.World, w.sync(in("all", "yes")))

			c.leave(w, gs)
			env.Receive(t, quick.asked, "the quick cluster is not left")
			env.Receive(t, slow.asked, "the slow cluster is not left")
			quick.release()
			held := &corev1.ConfigMap{}
			require.True(t, berlin.Eventually(func() bool {
				return berlin.ExistsIn(w.Namespace, held, "held") && !held.DeletionTimestamp.IsZero()
			}))
			slow.release()
			hub.Await(w.World, gs, "it is not told what is left", func(gs *v1alpha1.GitSync) bool {
				return strings.Contains(conditions.GetMessage(gs, v1alpha1.ReadyCondition), "waiting for")
			})

			held.Finalizers = nil
			require.NoError(t, berlin.Client.Update(t.Context(), held))
			c.over(w, gs)
		})
	}
}

// namesOf returns the names in status.clusters.
func namesOf(gs *v1alpha1.GitSync) string {
	var names []string
	for _, c := range gs.Status.Clusters {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

// awaitClusters waits until a GitSync is ready in these clusters and no others.
func (w *world) awaitClusters(gs *v1alpha1.GitSync, names string) {
	w.T.Helper()
	hub.Await(w.World, gs, "not delivered to: "+names, func(gs *v1alpha1.GitSync) bool { return namesOf(gs) == names })
	hub.AwaitReady(w.World, gs)
}

// cluster returns a KubernetesCluster of the world, to be read.
func (w *world) cluster(name string) *v1alpha1.KubernetesCluster {
	kc := kubernetesCluster(name)
	kc.Namespace = w.Namespace
	return kc
}

// beginDeletion deletes a KubernetesCluster, which stays until endDeletion.
func (w *world) beginDeletion(name string) {
	w.T.Helper()
	hub.Change(w.World, w.cluster(name), func(kc *v1alpha1.KubernetesCluster) { kc.Finalizers = []string{"example.com/hold"} })
	require.NoError(w.T, w.Client.Delete(w.T.Context(), w.cluster(name)))
}

func (w *world) endDeletion(name string) {
	w.T.Helper()
	hub.Change(w.World, w.cluster(name), func(kc *v1alpha1.KubernetesCluster) { kc.Finalizers = nil })
}

// P11, C38: a cluster that has another name by now keeps what was delivered to it.
func TestGitSync_leavesOneOfTwoNamesOfACluster(t *testing.T) {
	deselect := func(w *world) {
		hub.Change(w.World, w.cluster("old"), func(kc *v1alpha1.KubernetesCluster) { kc.Labels = nil })
	}
	cases := map[string]struct {
		reason string
		// rename makes the GitSync leave the name old for the name new.
		rename func(*world, *v1alpha1.GitSync)
	}{
		"deselected": {"both are delivered to when one is deselected", func(w *world, gs *v1alpha1.GitSync) {
			w.Create(kubernetesCluster("new"))
			w.connect("new", nil)
			w.awaitClusters(gs, "new old")
			deselect(w)
		}},
		"deleted": {"one waits to be left before it goes", func(w *world, gs *v1alpha1.GitSync) {
			w.Create(kubernetesCluster("new"))
			w.connect("new", nil)
			w.awaitClusters(gs, "new old")
			w.beginDeletion("old")
		}},
		"at once": {"what the new one leads to is known only after the old one is deselected", func(w *world, gs *v1alpha1.GitSync) {
			w.Create(kubernetesCluster("new"))
			deselect(w)
			hub.Await(w.World, gs, "the old one is not left", func(gs *v1alpha1.GitSync) bool {
				return namesOf(gs) == "new old" && gs.Status.Clusters[1].Leaving
			})
			w.connect("new", nil)
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			berlin := w.addClusters("old")["old"]
			w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "x")})
			gs := hub.AwaitReady(w.World, w.sync(in("all", "yes")))
			before, after := &corev1.ConfigMap{}, &corev1.ConfigMap{}
			require.True(t, berlin.ExistsIn(w.Namespace, before, "a"))

			c.rename(w, gs)
			w.awaitClusters(gs, "new")
			require.True(t, berlin.ExistsIn(w.Namespace, after, "a"), c.reason)
			assert.Equal(t, before.UID, after.UID, c.reason)
			w.endDeletion("old")
		})
	}
}

// P11: the cluster that a GitSync lives in may get a name, too.
func TestGitSync_keepsWhatItDeliveredToItsOwnCluster(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "x")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	before, after := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	require.True(t, w.Exists(before, "a"))
	w.Create(kubernetesCluster("hub"))
	key := types.NamespacedName{Namespace: w.Namespace, Name: "hub"}
	w.process.Clusters.Ensure(key, "local", nil)
	t.Cleanup(func() { w.process.Clusters.Remove(key) })

	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { in("pool", "hub")(&gs.Spec) })
	w.awaitClusters(gs, "hub")
	require.True(t, w.Exists(after, "a"))
	assert.Equal(t, before.UID, after.UID)
}

// C38: what runs in a cluster that is abandoned stays, whichever controller leaves it first.
func TestGitSync_leavesAnAbandonedClusterAsItIs(t *testing.T) {
	cases := map[string]struct {
		onDelete v1alpha1.DeletePolicy
		stays    bool
	}{
		"Abandon": {v1alpha1.DeleteAbandon, true},
		"Wait":    {v1alpha1.DeleteWait, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			berlin := w.addClusters("berlin")["berlin"]
			w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "x")})
			gs := hub.AwaitReady(w.World, w.sync(in("all", "yes")))
			hub.Change(w.World, w.cluster("berlin"), func(kc *v1alpha1.KubernetesCluster) { kc.Spec.OnDelete = c.onDelete })
			w.beginDeletion("berlin")
			w.awaitClusters(gs, "")
			assert.Equal(t, c.stays, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
			w.endDeletion("berlin")
		})
	}
}

// C41: what stays in a cluster that was given up is not deleted by the next process, even where that
// cluster is the one that the GitSync lives in.
func TestGitSync_forgetsWhatItGaveUp(t *testing.T) {
	c := env.Start(t, env.Options{Name: "given-up", CRDs: []string{crds}})
	first := hub.Start(t, c, setup)
	w := makeWorld(t, c, first)
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "x")})
	w.Create(kubernetesCluster("hub"))
	first.Clusters.Ensure(types.NamespacedName{Namespace: w.Namespace, Name: "hub"}, "local", nil)
	gs := hub.AwaitReady(w.World, w.sync(in("pool", "hub")))
	require.EqualValues(t, 1, gs.Status.Inventory.Count)
	require.NoError(t, w.Client.Delete(t.Context(), w.cluster("hub")))
	w.awaitClusters(gs, "")
	assert.Zero(t, gs.Status.Inventory.Count)
	first.Stop()

	second := hub.Start(t, c, setup)
	t.Cleanup(second.Stop)
	hub.Reconcile(w.World, gs)
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "a"))
}
