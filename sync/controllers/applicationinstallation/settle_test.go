package applicationinstallation_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// What is healthy almost at once is reported once, so what was installed gets a moment, in which it is
// reported as being installed. This is no measurement: however slow a machine is, no status comes earlier.
func TestInstallation_givesWhatItInstalledAMoment(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	w.noPods()
	began := time.Now()
	inst := w.install(func(spec *v1alpha1.ApplicationInstallationSpec) {
		spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{DisableHooks: true}} // they need Pods, too
	})
	hub.Await(w.World, inst, "the install is not told", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Release != nil })
	assert.GreaterOrEqual(t, time.Since(began), 2*time.Second)
	assert.Equal(t, v1alpha1.ProgressingReason, conditions.GetReason(inst, v1alpha1.ReadyCondition), "it is told, although it is not healthy")
}

// C41: a cluster that is left in that moment, as when it gets other credentials, gets the note of the
// release first: the next driver would know nothing of it.
func TestInstallation_isNotedWhereItsClusterIsLeft(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	w.noPods()
	inst := w.install(func(spec *v1alpha1.ApplicationInstallationSpec) {
		spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{DisableHooks: true}}
	})
	require.True(t, w.Eventually(func() bool {
		records := &corev1.SecretList{}
		require.NoError(t, w.Client.List(t.Context(), records, client.InNamespace(w.Namespace), client.MatchingLabels{"owner": "helm", "status": "deployed"}))
		return len(records.Items) > 0
	}), "it is not installed")
	ensure := func() { shared.process.Clusters.Ensure(local, "local", nil) }
	t.Cleanup(ensure) // other tests use the cluster, too
	shared.process.Clusters.Remove(local)
	hub.Await(w.World, inst, "the release is not noted", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Release != nil })
	ensure()
}

// C41, K47: nor is it lost there that a release was given up: it would be installed again.
func TestInstallation_isNotedToBeGivenUpWhereItsClusterIsLeft(t *testing.T) {
	w := newWorld(t)
	w.noPods()
	w.define(nil)
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(t, map[string]any{"hook": map[string]any{"enabled": false}})
		s.DeployOptions = waiting(time.Hour, true)
	})
	w.awaitAwaited(inst, 1)
	held := w.hold("web", admissionregistrationv1.Delete, v1alpha1.GroupVersion.WithResource("applications"), func() error {
		probe := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "web"}}
		return w.Client.Delete(t.Context(), probe, client.DryRunAll)
	})
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = waiting(short, true) })
	env.Receive(t, held.asked, "its Application is not deleted")
	ensure := func() { shared.process.Clusters.Ensure(local, "local", nil) }
	t.Cleanup(ensure) // other tests use the cluster, too
	shared.process.Clusters.Remove(local)
	hub.Await(w.World, inst, "it is not noted", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.GivenUp != "" })
	assert.Nil(t, inst.Status.Release)
	held.release()
	ensure()
}
