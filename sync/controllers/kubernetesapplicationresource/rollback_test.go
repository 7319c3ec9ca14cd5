package kubernetesapplicationresource_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C65: the object of a resource that a rollback holds is left as it is, until its template says something
// else. A cluster without rollbacks holds nothing.
func TestResource_leavesWhatARollbackHolds(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "new"))))
	cm := w.berlin.awaitValue("web", "new")
	hold := func(cm *corev1.ConfigMap) {
		hub.MarkHeld(cm, "back")
		cm.Data["key"] = "old"
	}
	hub.Change(w.berlin.World, cm, hold)
	w.berlin.awaitValue("web", "new")

	require.NoError(t, w.berlin.Cluster.InstallCRDs(t.Context(), crds+"/apps.waybill.dev_applicationrollbacks.yaml"))
	w.berlin.Rollback("back", v1alpha1.RollbackCompleted, v1alpha1.HeldObject{ObjectReference: v1alpha1.ObjectReference{Kind: "ConfigMap", Name: "web"}})
	hub.Change(w.berlin.World, cm, hold)
	kar = hub.Await(w.World, kar, "it is held", func(k *v1alpha1.KubernetesApplicationResource) bool {
		return conditions.IsTrue(k, v1alpha1.HeldCondition)
	})
	w.berlin.awaitValue("web", "old")
	hub.Reconcile(w.World, kar)
	w.berlin.awaitValue("web", "old")
	assert.Equal(t, v1alpha1.StateSubmitted, kar.Status.State)

	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Template = template(t, w.berlin.configMap("web", "newer"))
	})
	w.berlin.awaitValue("web", "newer")
	hub.Await(w.World, kar, "it is not held any more", func(k *v1alpha1.KubernetesApplicationResource) bool {
		return !conditions.Has(k, v1alpha1.HeldCondition)
	})
}
