package gitsync_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// slowDelivery makes a GitSync deliver a.yaml to a cluster that is slow, and returns while the
// delivery is under way: what it makes is declared, and not yet made.
func (w *world) slowDelivery() (*v1alpha1.GitSync, *user) {
	w.T.Helper()
	berlin := w.addClusters("berlin")["berlin"]
	require.True(w.T, w.Eventually(func() bool { _, err := w.process.Clusters.Get(berlin.key); return err == nil }), "not engaged")
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	berlin.gate.Slow(time.Second)
	w.T.Cleanup(func() { berlin.gate.Slow(0) })
	gs := hub.Await(w.World, w.sync(in("pool", "berlin")), "nothing is declared", func(gs *v1alpha1.GitSync) bool {
		return gs.Status.Inventory != nil && gs.Status.Inventory.Count == 1
	})
	require.False(w.T, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"), "the delivery has ended already")
	return gs, berlin
}

// C41, P9: what a delivery makes is taken out, although its end came when something else was wanted
// already.
func TestGitSync_deletedDuringADeliveryLeavesNothing(t *testing.T) {
	w := newWorld(t)
	gs, berlin := w.slowDelivery()
	require.NoError(t, w.Client.Delete(t.Context(), gs))
	w.AwaitGone(&v1alpha1.GitSync{}, gs.Name)
	assert.False(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
}

// C41, P11
func TestGitSync_deselectedDuringADeliveryLeavesNothing(t *testing.T) {
	w := newWorld(t)
	gs, berlin := w.slowDelivery()
	kc := &v1alpha1.KubernetesCluster{}
	require.NoError(t, w.Client.Get(t.Context(), berlin.key, kc))
	hub.Change(w.World, kc, func(k *v1alpha1.KubernetesCluster) { k.Labels["pool"] = "other" })
	hub.Await(w.World, gs, "the cluster is not left", func(gs *v1alpha1.GitSync) bool {
		return len(gs.Status.Clusters) == 0 && gs.Status.ObservedGeneration == gs.Generation && gs.Status.Inventory.Count == 0
	})
	assert.False(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
}

// C41, P9: a commit takes out what the one before was about to make.
func TestGitSync_secondCommitDuringADeliveryPrunes(t *testing.T) {
	w := newWorld(t)
	gs, berlin := w.slowDelivery()
	w.commit(map[string]string{"b.yaml": configMapIn(w.Namespace, "b", "one")})
	w.remove("a.yaml")
	hub.Reconcile(w.World, gs)
	assert.EqualValues(t, 1, hub.AwaitReady(w.World, gs).Status.Inventory.Count)
	assert.True(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "b"))
	assert.False(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
}

// C37: an account that is named during a delivery is the one that delivers.
func TestGitSync_accountThatIsNamedDuringADeliveryDelivers(t *testing.T) {
	w := newWorld(t)
	gs, _ := w.slowDelivery()
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.ServiceAccountName = "nobody" })
	assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason), "system:serviceaccount:"+w.Namespace+":nobody")
}
