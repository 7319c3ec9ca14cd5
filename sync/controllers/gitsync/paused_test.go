package gitsync_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// errNoSecret is why the controller of KubernetesClusters withholds one.
var errNoSecret = errors.New("the Secret team/berlin-kubeconfig does not exist: create it, with a kubeconfig in it")

// pause sets spec.paused of a KubernetesCluster.
func (w *world) pause(name string, paused bool) {
	w.T.Helper()
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	hub.Change(w.World, kc, func(k *v1alpha1.KubernetesCluster) { k.Spec.Paused = paused })
	w.AwaitSeen(w.process, kc)
}

// P11: a GitSync whose commit is not in a paused cluster does not say that it is.
func TestGitSync_pausedClusterIsNotUpToDate(t *testing.T) {
	w := newWorld(t)
	w.addClusters("berlin", "oslo")
	before := w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(in("all", "yes")))
	w.pause("berlin", true)
	hub.Await(w.World, gs, "the paused cluster is not named", func(gs *v1alpha1.GitSync) bool {
		return conditions.IsReady(gs) && strings.HasSuffix(conditions.GetMessage(gs, v1alpha1.ReadyCondition), "; 1 of 2 clusters is paused, without drift correction: berlin")
	})

	after := w.commit(map[string]string{"b.yaml": configMapIn(w.Namespace, "b", "one")})
	gs = hub.Reconcile(w.World, gs)
	assert.True(t, conditions.IsUnknown(gs, v1alpha1.ReadyCondition))
	assert.Equal(t, v1alpha1.SuspendedReason, conditions.GetReason(gs, v1alpha1.ReadyCondition))
	assert.Contains(t, conditions.GetMessage(gs, v1alpha1.ReadyCondition), "1 of 2 clusters is paused, and not up to date: berlin; ")
	assert.Contains(t, gs.Status.Revision, before, "what is in every cluster")
	assert.Contains(t, gs.Status.AttemptedRevision, after)
	assert.False(t, gs.Status.Clusters[0].Ready)
	assert.True(t, gs.Status.Clusters[1].Ready)
	w.AwaitNoMetric("waybill_gitsync_ready", map[string]string{"namespace": gs.Namespace, "name": gs.Name})

	w.pause("berlin", false)
	gs = hub.AwaitReady(w.World, gs)
	assert.Contains(t, gs.Status.Revision, after)
	assert.Equal(t, "applied "+gs.Status.Revision+": 2 objects in 2 clusters", conditions.GetMessage(gs, v1alpha1.ReadyCondition))
}

// C38: what is in a paused cluster stays, and the GitSync that is to take it out says what it waits for.
func TestGitSync_deletionWaitsForAPausedCluster(t *testing.T) {
	w := newWorld(t)
	berlin := w.addClusters("berlin")["berlin"]
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(in("pool", "berlin")))
	w.pause("berlin", true)
	require.NoError(t, w.Client.Delete(t.Context(), gs))
	hub.Await(w.World, gs, "it is not said what is waited for", func(gs *v1alpha1.GitSync) bool {
		return strings.HasPrefix(conditions.GetMessage(gs, v1alpha1.ReadyCondition),
			"cluster berlin: the KubernetesCluster is paused: to have what was delivered there deleted, set spec.paused to false; ")
	})
	assert.True(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
	w.pause("berlin", false)
	w.AwaitGone(&v1alpha1.GitSync{}, gs.Name)
	assert.False(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
}

// C38: a cluster without its kubeconfig is said to lack that, and not to be paused.
func TestGitSync_namesWhyAClusterIsWithheld(t *testing.T) {
	w := newWorld(t)
	berlin := w.addClusters("berlin")["berlin"]
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(in("pool", "berlin")))
	w.process.Clusters.Withhold(berlin.key, errNoSecret)
	message := hub.AwaitReason(w.World, gs, v1alpha1.ClusterUnreachableReason)
	assert.Equal(t, "cluster "+berlin.key.String()+" is not connected: "+errNoSecret.Error(), message)
}
