package kubernetesapplicationresource_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func (w *world) kubernetesCluster(name string) *v1alpha1.KubernetesCluster {
	return &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
}

// in has a resource go to another cluster.
func in(kar *v1alpha1.KubernetesApplicationResource, cluster string) *v1alpha1.KubernetesApplicationResource {
	kar.Spec.ClusterName = cluster
	return kar
}

// A cluster that dies holds up no other, before, during and after submission; what it holds is
// corrected when it is back.
func TestClusters_deadOneHoldsUpNoOther(t *testing.T) {
	for name, die := range map[string]func(*env.Gate) error{
		"RefusesConnections":     func(g *env.Gate) error { g.Shut(); return nil },
		"AcceptsAndNeverAnswers": func(g *env.Gate) error { return g.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dead := w.addCluster("dead", nil)
			held := hub.AwaitReady(w.World, w.submit(in(w.resource("held", dead.configMap("held", "one")), "dead")))
			require.NoError(t, die(dead.gate))
			w.process.Clusters.Probe(dead.key)
			hub.Change(w.World, held, func(k *v1alpha1.KubernetesApplicationResource) {
				k.Spec.Template = template(t, dead.configMap("held", "two"))
			})
			late := w.submit(in(w.resource("late", dead.configMap("late", "one")), "dead"))
			hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "one"))))
			hub.AwaitReason(w.World, late, v1alpha1.ClusterUnreachableReason)
			assert.Equal(t, v1alpha1.StateScheduled, late.Status.State)

			require.NoError(t, dead.gate.Open())
			w.process.Clusters.Probe(dead.key)
			hub.AwaitReady(w.World, late)
			hub.AwaitReady(w.World, held)
			dead.awaitValue("held", "two")
		})
	}
}

// What was submitted stays submitted while the cluster cannot be read.
func TestClusters_lostKeepsWhatWasKnown(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.service("web"))))
	w.awaitRemote(kar, `{"loadBalancer":{}}`)
	w.berlin.gate.Shut()
	w.process.Clusters.Probe(w.berlin.key)
	hub.AwaitReason(w.World, kar, v1alpha1.ClusterUnreachableReason)
	assert.Equal(t, v1alpha1.StateSubmitted, kar.Status.State)
	require.NotNil(t, kar.Status.Remote)

	require.NoError(t, w.Client.Delete(t.Context(), kar))
	hub.Await(w.World, kar, "it is not said what the deletion waits for", func(k *v1alpha1.KubernetesApplicationResource) bool {
		return k.Status.State == v1alpha1.StateDeleting
	})
	require.NoError(t, w.berlin.gate.Open())
	w.process.Clusters.Probe(w.berlin.key)
	w.AwaitGone(kar, "web")
	assert.False(t, w.berlin.Exists(&corev1.Service{}, "web"))
}

func TestClusters_paused(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "one"))))
	hub.Change(w.World, w.kubernetesCluster("berlin"), func(k *v1alpha1.KubernetesCluster) { k.Spec.Paused = true })
	hub.AwaitReason(w.World, kar, v1alpha1.SuspendedReason)
	assert.Equal(t, v1alpha1.StateSubmitted, kar.Status.State, "what runs there keeps running")
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Template = template(t, w.berlin.configMap("web", "two"))
	})
	hub.AwaitReason(w.World, kar, v1alpha1.SuspendedReason)
	assert.Equal(t, v1alpha1.StateScheduled, kar.Status.State, "what is wanted now is not there")
	require.NoError(t, w.Client.Delete(t.Context(), kar))
	hub.Await(w.World, kar, "it is not said what the deletion waits for", func(k *v1alpha1.KubernetesApplicationResource) bool {
		return k.Status.State == v1alpha1.StateDeleting
	})
	w.berlin.awaitValue("web", "one")

	hub.Change(w.World, w.kubernetesCluster("berlin"), func(k *v1alpha1.KubernetesCluster) { k.Spec.Paused = false })
	w.AwaitGone(kar, "web")
	assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))
}

// C38, W60: a cluster that is gone is reported, nothing is moved, and nothing hangs on it.
func TestClusters_gone(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "one"))))
	require.NoError(t, w.Client.Delete(t.Context(), w.kubernetesCluster("berlin")))
	hub.AwaitReason(w.World, kar, v1alpha1.ClusterNotFoundReason)
	assert.Equal(t, v1alpha1.StateFailed, kar.Status.State)
	require.NoError(t, w.Client.Delete(t.Context(), kar))
	w.AwaitGone(kar, "web")
	assert.True(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"), "what runs in a cluster that was given up stays")
}

// C38: the cluster is back under its name, and goes on where it was.
func TestClusters_backAgain(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "one"))))
	require.NoError(t, w.Client.Delete(t.Context(), w.kubernetesCluster("berlin")))
	hub.AwaitReason(w.World, kar, v1alpha1.ClusterNotFoundReason)
	w.Create(&v1alpha1.KubernetesCluster{ObjectMeta: named("berlin")})
	hub.AwaitReady(w.World, kar)
}
