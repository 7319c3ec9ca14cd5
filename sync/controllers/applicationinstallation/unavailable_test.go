package applicationinstallation_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// P13, K3: while the chart of the next version cannot be had, what is installed is corrected, and
// its health is reported, also after a restart.
func TestInstallation_isKeptWhileItsNextVersionCannotBeFetched(t *testing.T) {
	w := newWorld(t)
	inst := w.announced()
	w.awaitBack()
	w.awaitCorrected("Deployment.apps " + w.Namespace + "/web was missing")
	app := &v1alpha1.Application{}
	require.True(t, w.Exists(app, "web"))
	assert.Equal(t, "1.0.0", app.Spec.Version, "the Application is of what is installed")

	engageAnew()
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
	t.Parallel()
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
	t.Parallel()
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

// A failed upgrade stays one, even if what is installed is corrected in the meantime.
func TestInstallation_correctionDoesNotHideAFailedUpgrade(t *testing.T) {
	t.Parallel()
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

// K3: a correction that failed while the failure of an upgrade lasts is reported, and repeated.
func TestInstallation_correctionIsRepeatedWhileAnUpgradeHasFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.Values = values(t, map[string]any{"replicas": "many"})
	})
	message := hub.AwaitReason(w.World, inst, v1alpha1.InvalidValuesReason)
	quota := &corev1.ResourceQuota{ObjectMeta: objectMeta("deployments"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")},
	}}
	w.Create(quota)
	w.awaitNoDeployments()
	require.NoError(t, w.Client.Delete(t.Context(), w.deployment("web")))
	hub.Await(w.World, inst, "both are said", func(i *v1alpha1.ApplicationInstallation) bool {
		said := conditions.GetMessage(i, v1alpha1.ReadyCondition)
		return strings.HasPrefix(said, message+"; what is installed: ") && strings.Contains(said, "exceeded quota")
	})
	assert.True(t, conditions.IsStalled(inst))

	require.NoError(t, w.Client.Delete(t.Context(), quota))
	require.True(t, w.Eventually(func() bool { return w.peekDeployment("web") != nil }), "nothing but time has it corrected")
	hub.Await(w.World, inst, "the failure of the upgrade is said alone", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.GetMessage(i, v1alpha1.ReadyCondition) == message
	})
}

// awaitNoDeployments waits until a quota refuses another Deployment.
func (w *world) awaitNoDeployments() {
	w.T.Helper()
	require.True(w.T, w.Eventually(func() bool {
		another := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "another"}, Spec: *w.deployment("web").Spec.DeepCopy()}
		return apierrors.IsForbidden(w.Client.Create(w.T.Context(), another, client.DryRunAll))
	}), "the quota is in force")
}

// A release that a user removed is not installed any more, also while the chart to install it
// again cannot be had.
func TestInstallation_saysThatItsReleaseIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst := w.announced()
	require.True(t, conditions.IsTrue(inst, v1alpha1.InstalledCondition))
	for _, secret := range w.releases("web") {
		require.NoError(t, w.Client.Delete(t.Context(), &secret))
	}
	require.NoError(t, w.Client.Delete(t.Context(), w.deployment("web")))
	hub.Await(w.World, inst, "it is not installed", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.IsFalse(i, v1alpha1.InstalledCondition)
	})
	assert.Contains(t, conditions.GetMessage(inst, v1alpha1.InstalledCondition), "there is no release "+w.Namespace+"/web")
	assert.Equal(t, v1alpha1.ChartNotFoundReason, conditions.GetReason(inst, v1alpha1.ReadyCondition))

	w.publish("1.1.0")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { metaAnnotate(i, v1alpha1.ReconcileAtAnnotation, "now") })
	hub.AwaitReady(w.World, inst)
	assert.True(t, conditions.IsTrue(inst, v1alpha1.InstalledCondition))
}

// P13, K3: what is installed is corrected also while it is not known what is wanted.
func TestInstallation_isKeptWhileItsSecretIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst, _, _ := w.followed()
	require.NoError(t, w.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hub.SystemNamespace, Name: w.Namespace}}))
	hub.AwaitReason(w.World, inst, v1alpha1.SecretNotFoundReason)
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "cm"))
	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "cm")
	w.awaitCorrected("ConfigMap " + w.Namespace + "/cm was missing")
}

// C47, P13: with values that cannot be read, what is installed is kept, also after a restart.
func TestInstallation_isKeptWhileItsValuesAreMissing(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "missing"}}
	})
	hub.AwaitReason(w.World, inst, v1alpha1.InvalidValuesReason)
	w.awaitBack()
	engageAnew()
	w.awaitBack()
	assert.True(t, conditions.IsTrue(inst, v1alpha1.InstalledCondition))
}

// C47: what the definition said about drift is followed also when it is gone.
func TestInstallation_driftIsOnlyReportedAfterItsDefinition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	definition := w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
		d.DefaultDeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{DriftDetection: v1alpha1.DriftWarn}}
	})
	inst := hub.AwaitReady(w.World, w.install(nil))
	require.NoError(t, w.Client.Delete(t.Context(), definition))
	hub.AwaitReason(w.World, inst, v1alpha1.DefinitionGoneReason)
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	hub.Await(w.World, inst, "drift is reported", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.IsTrue(i, v1alpha1.DriftedCondition)
	})
	assert.EqualValues(t, 7, *w.deployment("web").Spec.Replicas, "and left alone")
	assert.Equal(t, v1alpha1.DefinitionGoneReason, conditions.GetReason(inst, v1alpha1.ReadyCondition))
}
