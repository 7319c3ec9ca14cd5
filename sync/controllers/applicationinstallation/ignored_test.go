package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

func ignoringReplicas(s *v1alpha1.ApplicationInstallationSpec) {
	s.IgnoreDifferences = []v1alpha1.IgnoredDifference{{
		Target: &v1alpha1.DifferenceTarget{Group: "apps", Kind: "Deployment"}, JSONPointers: []string{"/spec/replicas"},
	}}
}

// What is ignored is left as others set it, by corrections and by upgrades, and corrected once it is not
// ignored any more.
func TestInstallation_leavesWhatIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(ignoringReplicas))
	assert.EqualValues(t, 2, *w.deployment("web").Spec.Replicas, "it begins with what the chart says")
	w.leavesReplicas(inst)
	assert.EqualValues(t, 2, inst.Status.Release.Revision)

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.IgnoreDifferences = nil })
	require.True(t, w.Eventually(func() bool { return *w.deployment("web").Spec.Replicas == 2 }))
	w.awaitCorrected("Deployment.apps " + w.Namespace + "/web differed in spec.replicas")
	hub.AwaitReady(w.World, inst)
	assert.EqualValues(t, 2, inst.Status.Release.Revision, "which is no upgrade")
}

// leavesReplicas scales a Deployment, has something else of it corrected, and then upgrades it.
func (w *world) leavesReplicas(inst *v1alpha1.ApplicationInstallation) {
	w.T.Helper()
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](7)
		d.Spec.Template.Spec.Containers[0].Image = "theirs"
	})
	require.True(w.T, w.Eventually(func() bool { return w.deployment("web").Spec.Template.Spec.Containers[0].Image != "theirs" }))
	assert.EqualValues(w.T, 7, *w.deployment("web").Spec.Replicas, "a correction leaves it")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.Await(w.World, inst, "it is upgraded", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Application.Version == "1.1.0" && i.Status.ObservedGeneration == i.Generation
	})
	hub.AwaitReady(w.World, inst)
	assert.EqualValues(w.T, 7, *w.deployment("web").Spec.Replicas, "and so does an upgrade")
}

func TestInstallation_leavesWhatIsIgnoredOfAKustomization(t *testing.T) {
	t.Parallel()
	const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`
	w := newWorld(t)
	w.kustomizations(map[string]string{"1.0.0/web.yaml": deployment, "1.1.0/web.yaml": deployment + "  minReadySeconds: 1\n"})
	inst := hub.AwaitReady(w.World, w.install(ignoringReplicas))
	w.leavesReplicas(inst)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.IgnoreDifferences = nil })
	require.True(t, w.Eventually(func() bool { return *w.deployment("web").Spec.Replicas == 2 }))
}
