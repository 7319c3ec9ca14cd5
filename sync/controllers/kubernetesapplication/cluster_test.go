package kubernetesapplication_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

func (w *world) submitted(cluster string) *v1alpha1.KubernetesApplication {
	w.T.Helper()
	app := application("web", configMap(w.T, "one"))
	app.Spec.ClusterName = cluster
	w.submit(app)
	w.say("one", "")
	return hub.AwaitReady(w.World, app)
}

// W60: a cluster that is gone is reported, and not replaced.
func TestCluster_gone(t *testing.T) {
	w := newWorld(t)
	oslo := w.addCluster("oslo", nil)
	w.addCluster("rome", nil)
	app := w.submitted("oslo")
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "oslo"}}
	require.NoError(t, w.Client.Delete(t.Context(), kc))
	w.process.Clusters.Remove(oslo.key)

	message := hub.AwaitReason(w.World, app, v1alpha1.ClusterNotFoundReason)
	assert.Contains(t, message, "KubernetesCluster oslo does not exist")
	assert.True(t, conditions.IsStalled(app))
	assert.True(t, conditions.IsFalse(app, v1alpha1.ScheduledCondition))
	assert.Equal(t, v1alpha1.StateFailed, app.Status.State)
	assert.Equal(t, "oslo", app.Spec.ClusterName)
	assert.Equal(t, "oslo", app.Status.Cluster)
	w.resource("one")

	w.addCluster("oslo", nil)
	hub.AwaitReady(w.World, app)
}

// A cluster that is lost takes nothing back; it is said, and said again when it is back.
func TestCluster_lostAndBack(t *testing.T) {
	w := newWorld(t)
	oslo := w.addCluster("oslo", nil)
	app := w.submitted("oslo")
	oslo.gate.Shut()
	w.process.Clusters.Probe(oslo.key)
	message := hub.AwaitReason(w.World, app, v1alpha1.ClusterUnreachableReason)
	assert.Contains(t, message, "cluster oslo cannot be reached: its API server does not answer")
	assert.Equal(t, v1alpha1.StateSubmitted, app.Status.State)
	assert.EqualValues(t, 1, app.Status.SubmittedResources)
	require.NoError(t, oslo.gate.Open())
	hub.AwaitReady(w.World, app)
}

func TestCluster_paused(t *testing.T) {
	w := newWorld(t)
	oslo := w.addCluster("oslo", nil)
	app := w.submitted("oslo")
	change(w, oslo, func(k *v1alpha1.KubernetesCluster) { k.Spec.Paused = true })
	assert.Equal(t, "cluster oslo is paused: nothing is submitted to it", hub.AwaitReason(w.World, app, v1alpha1.SuspendedReason))
	change(w, oslo, func(k *v1alpha1.KubernetesCluster) { k.Spec.Paused = false })
	hub.AwaitReady(w.World, app)
}
