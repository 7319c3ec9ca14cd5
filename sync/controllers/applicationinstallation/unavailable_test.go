package applicationinstallation_test

import (
	"strings"
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

// announced installs version 1.0.0 and then wants 1.1.0, whose chart is not published yet.
func (w *world) announced() *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(w.T, err)
	w.repo = repo
	w.publish("1.0.0")
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReason(w.World, inst, v1alpha1.ChartNotFoundReason)
	return inst
}

// publish pushes a version of the chart.
func (w *world) publish(version string) {
	w.T.Helper()
	_, err := w.repo.Push(charts+"web", func(c *chart.Chart) { c.Metadata.Version = version })
	require.NoError(w.T, err)
}

// awaitBack deletes the Deployment and waits until it is back.
func (w *world) awaitBack() {
	w.T.Helper()
	before := w.deployment("web")
	require.NoError(w.T, w.Client.Delete(w.T.Context(), before))
	require.True(w.T, w.Eventually(func() bool {
		d := w.peekDeployment("web")
		return d != nil && d.UID != before.UID
	}), "what was deleted is back")
}

// P13, K3: while the chart of the next version cannot be had, what is installed is put right, and
// its health is reported, also after a restart.
func TestInstallation_isKeptWhileItsNextVersionCannotBeFetched(t *testing.T) {
	w := newWorld(t)
	inst := w.announced()
	w.awaitBack()
	w.awaitCorrected("Deployment.apps " + w.Namespace + "/web was missing")
	app := &v1alpha1.Application{}
	require.True(t, w.Exists(app, "web"))
	assert.Equal(t, "1.0.0", app.Spec.Version, "the Application is of what is installed")

	engageAnew(t.Name())
	w.awaitBack()

	allow := w.noPods()
	hub.Await(w.World, inst, "both are said", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.GetReason(i, v1alpha1.ReadyCondition) == v1alpha1.ChartNotFoundReason &&
			strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), "; what is installed: ")
	})
	assert.True(t, conditions.IsTrue(inst, v1alpha1.InstalledCondition))
	assert.Contains(t, conditions.GetMessage(inst, v1alpha1.InstalledCondition), "installed "+w.Namespace+" 1.0.0")
	allow()
	hub.Await(w.World, inst, "it is healthy again", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.GetReason(i, v1alpha1.ReadyCondition) == v1alpha1.ChartNotFoundReason &&
			!strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), "what is installed")
	})

	w.publish("1.1.0")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { metaAnnotate(i, v1alpha1.ReconcileAtAnnotation, "now") })
	hub.AwaitReady(w.World, inst)
	assert.Equal(t, "web-1.1.0", inst.Status.Release.Chart)
}

// C25, P13: what is installed is built from the folder and the revision that it was installed from.
func TestInstallation_ofAKustomizationIsKeptWhileItsNextVersionCannotBeFetched(t *testing.T) {
	w := newWorld(t)
	inst, _, _ := w.followed()
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReason(w.World, inst, v1alpha1.PathNotFoundReason)
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "cm"))
	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "cm")
	assert.Equal(t, "one", cm.Data["key"])
}

// P13: while a server does not answer, the health of what is installed is reported all the same.
func TestInstallation_reportsHealthWhileItsServerHangs(t *testing.T) {
	w := newWorld(t)
	_, server := w.kustomizations(map[string]string{"1.0.0/web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n" +
		"spec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: web}]}\n"})
	inst := hub.AwaitReady(w.World, w.install(nil))
	require.NoError(t, server.Hang())
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { metaAnnotate(i, v1alpha1.ReconcileAtAnnotation, "now") })
	w.noPods()
	hub.AwaitReason(w.World, inst, v1alpha1.ProgressingReason)
	assert.NotEqual(t, "now", inst.Status.LastHandledReconcileAt, "the server has not answered yet")
	require.NoError(t, server.Open())
	hub.Await(w.World, inst, "the request is handled", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.LastHandledReconcileAt == "now"
	})
}

// A failed upgrade stays one, even if what is installed is put right in the meantime.
func TestInstallation_correctionDoesNotHideAFailedUpgrade(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.Values = values(t, map[string]any{"replicas": "many"})
	})
	message := hub.AwaitReason(w.World, inst, v1alpha1.InvalidValuesReason)
	w.awaitBack()
	w.awaitCorrected("Deployment.apps " + w.Namespace + "/web was missing")
	assert.Equal(t, message, hub.AwaitReason(w.World, inst, v1alpha1.InvalidValuesReason))
	assert.True(t, conditions.IsStalled(inst))
}
