package applicationinstallation_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func keyed(value string) map[string]string {
	return map[string]string{"1.0.0/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {key: " + value + "}\n"}
}

// followed installs a folder of a branch, and returns what serves it.
func (w *world) followed() (*v1alpha1.ApplicationInstallation, *env.GitRepo, *env.GitServer) {
	w.T.Helper()
	repo, server := w.kustomizations(keyed("one"))
	return hub.AwaitReady(w.World, w.install(nil)), repo, server
}

// C25, P13: what is corrected is what is installed, not what the branch points at by now.
func TestInstallation_correctionInstallsNothingNewer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst, repo, _ := w.followed()
	_, err := repo.Commit(t.Context(), keyed("two"))
	require.NoError(t, err)
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "cm"))
	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "cm")
	assert.Equal(t, "one", cm.Data["key"])

	hub.Reconcile(w.World, inst)
	require.True(t, w.Eventually(func() bool { return w.Exists(cm, "cm") && cm.Data["key"] == "two" }))
}

// P13: a server that is down is said as long as it is, and holds up no correction.
func TestInstallation_keepsWhatIsInstalledWhileItsServerIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst, _, server := w.followed()
	server.Shut()
	hub.Reconcile(w.World, inst)
	hub.AwaitReason(w.World, inst, v1alpha1.GitUnreachableReason)
	assert.True(t, conditions.IsTrue(inst, v1alpha1.InstalledCondition))

	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "cm"))
	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "cm")
	w.awaitCorrected("ConfigMap " + w.Namespace + "/cm was missing")
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(inst), inst))
	assert.Equal(t, v1alpha1.GitUnreachableReason, conditions.GetReason(inst, v1alpha1.ReadyCondition), "that it was corrected says nothing of the server")

	require.NoError(t, server.Open())
	hub.Reconcile(w.World, inst)
	hub.AwaitReady(w.World, inst)
}

// P13: a server that does not answer holds up no correction either, while it is waited for.
func TestInstallation_correctsWhileItsServerHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst, _, server := w.followed()
	require.NoError(t, server.Hang())
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		metaAnnotate(i, v1alpha1.ReconcileAtAnnotation, "now")
	})
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "cm"))
	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "cm")
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(inst), inst))
	assert.NotEqual(t, "now", inst.Status.LastHandledReconcileAt, "the server has not answered yet")
	require.NoError(t, server.Open())
}

// The interval finds also what no event reports: here, a user writes in Helm's name.
func TestInstallation_intervalComparesEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.ReconciliationInterval = metav1.Duration{Duration: time.Second}
	}))
	deployment := w.deployment("web")
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = ptr.To[int32](7)
	require.NoError(t, w.Client.Patch(t.Context(), deployment, client.StrategicMergeFrom(before), client.FieldOwner(v1alpha1.HelmFieldManager)))
	require.True(t, w.Eventually(func() bool { return *w.deployment("web").Spec.Replicas == 2 }))
}

// C47: a kustomization outlives its definition as a release does.
func TestInstallation_ofAKustomizationOutlivesItsDefinition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst, _, _ := w.followed()
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: objectMeta(w.Namespace)}
	require.NoError(t, w.Client.Delete(t.Context(), definition))
	hub.AwaitReason(w.World, inst, v1alpha1.DefinitionGoneReason)
	assert.True(t, conditions.IsStalled(inst))
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "cm"))
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "cm"))
}

// What was fetched for a version that is not wanted any more is no answer when it is wanted again.
func TestInstallation_forgetsWhatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := keyed("one")
	files["1.1.0/cm.yaml"] = files["1.0.0/cm.yaml"]
	repo, server := w.kustomizations(files)
	inst := hub.AwaitReady(w.World, w.install(nil))
	require.NoError(t, server.Hang())
	for _, version := range []string{"1.1.0", "1.0.0"} {
		hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = version })
		hub.Await(w.World, inst, "the version is looked at", func(i *v1alpha1.ApplicationInstallation) bool {
			return i.Status.ObservedGeneration == i.Generation || version == "1.1.0"
		})
		w.AwaitSeen(shared.process, inst)
	}
	require.NoError(t, server.Open())
	other := &v1alpha1.ApplicationInstallation{ObjectMeta: objectMeta("other"), Spec: *inst.Spec.DeepCopy()}
	other.Spec.Namespace = &v1alpha1.TargetNamespace{Name: w.Namespace + "-other", Create: true}
	w.Create(other)
	hub.AwaitReady(w.World, other)

	files["1.1.0/cm.yaml"] = keyed("two")["1.0.0/cm.yaml"]
	_, err := repo.Commit(t.Context(), files)
	require.NoError(t, err)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReady(w.World, inst)
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "cm"))
	assert.Equal(t, "two", cm.Data["key"])
}
