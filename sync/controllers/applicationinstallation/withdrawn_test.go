package applicationinstallation_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// removeVersion takes the first version out of the test's definition; by force if installations of it are to go.
func (w *world) removeVersion(byForce bool) {
	w.T.Helper()
	hub.Change(w.World, &v1alpha1.ApplicationDefinition{ObjectMeta: objectMeta(w.Namespace)}, func(d *v1alpha1.ApplicationDefinition) {
		if byForce {
			metaAnnotate(d, v1alpha1.ForceRemoveAnnotation, d.Spec.Versions[0].Version)
		}
		d.Spec.Versions = d.Spec.Versions[1:]
	})
}

// awaitLeaving waits until an installation is being deleted, and the controller has noticed.
func (w *world) awaitLeaving(inst *v1alpha1.ApplicationInstallation) {
	w.T.Helper()
	hub.Await(w.World, inst, "it is not deleted", func(i *v1alpha1.ApplicationInstallation) bool { return !i.DeletionTimestamp.IsZero() })
	w.AwaitSeen(shared.process, inst)
}

// K52, K53: a version that is withdrawn while its first objects are written leaves none of them behind.
func TestInstallation_versionIsWithdrawnDuringItsFirstApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst, held := w.slowKustomization()
	w.removeVersion(true)
	w.awaitLeaving(inst)
	held.release()
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&corev1.ServiceAccount{}, "v1.0.0"))
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "v1.0.0"))
	assert.False(t, w.Exists(&v1alpha1.Application{}, "web"))
}

// installing begins to install a chart, and returns while its hook runs.
func (w *world) installing() (*v1alpha1.ApplicationInstallation, held) {
	w.T.Helper()
	version := "0.9.0-" + w.Namespace
	_, err := w.repo.Push(charts+"web", func(c *chart.Chart) {
		c.Metadata.Version, c.Schema = version, nil
		c.Templates = []*chart.File{{Name: "templates/all.yaml", Data: []byte(hooked)}}
	})
	require.NoError(w.T, err)
	w.define(func(d *v1alpha1.ApplicationDefinitionSpec) { d.Versions[0].Template.Source = w.webSource(version) })
	hook := w.admission("greeting")
	inst := w.install(nil)
	env.Receive(w.T, hook.asked, "the hook does not run")
	return inst, hook
}

// K52, K53: a release that is being installed is uninstalled once its action has ended, hooks included.
func TestInstallation_versionIsWithdrawnDuringItsFirstHelmInstall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst, hook := w.installing()
	w.removeVersion(true)
	w.awaitLeaving(inst)
	hook.release()
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "web"))
	assert.Empty(t, w.releases("web"))
}

// C47: one that is not withdrawn by force, which admission refuses, keeps what was begun, and says that it is gone.
func TestInstallation_versionIsGoneDuringItsFirstHelmInstall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst, hook := w.installing()
	w.removeVersion(false)
	hook.release()
	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.DefinitionGoneReason), "what is installed keeps running")
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "web"))
	assert.True(t, conditions.IsTrue(inst, v1alpha1.InstalledCondition))
}
