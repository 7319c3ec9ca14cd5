package applicationinstallation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/conditions/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// P8, K1, K3, K34, K41, K42, K46, K47, K50, K53, C55: what is installed is data that a user
// publishes, and no part of a release of ours.
func TestInstallation_isInstalledUpgradedAndUninstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))

	require.NotNil(t, inst.Status.Release)
	assert.Equal(t, "web-1.0.0", inst.Status.Release.Chart)
	assert.EqualValues(t, 1, inst.Status.Release.Revision)
	assert.Equal(t, "1.0.0", inst.Status.Application.Version)
	assert.True(t, conditions.IsTrue(inst, v1alpha1.InstalledCondition))
	assert.Len(t, w.releases("web"), 1, "a real release, which `helm ls` sees")
	check.NewInProgressChecker(w.Client).CheckErr(t.Context(), inst)

	deployment := w.deployment("web")
	assert.Equal(t, deployment.Status.Replicas, deployment.Status.AvailableReplicas, "Ready waits for health (C43)")
	assert.Equal(t, "web", deployment.Labels[v1alpha1.ReleaseLabel])
	assert.NotContains(t, deployment.Spec.Template.Labels, v1alpha1.ReleaseLabel, "pod templates are not touched")

	app := &v1alpha1.Application{}
	require.True(t, w.Exists(app, "web"), "an installation makes exactly one Application")
	assert.Equal(t, v1alpha1.OwnershipObserve, app.Spec.Ownership)
	assert.NotEmpty(t, app.Spec.Components)

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReady(w.World, inst)
	assert.Equal(t, "web-1.1.0", inst.Status.Release.Chart)
	assert.EqualValues(t, 2, inst.Status.Release.Revision)

	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&appsv1.Deployment{}, "web"), "the finalizer stayed until the release was gone")
	assert.False(t, w.Exists(&v1alpha1.Application{}, "web"))
	assert.Empty(t, w.releases("web"))
}

// K39, K48, C26, C33
func TestInstallation_valuesOverrideEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(&corev1.Secret{ObjectMeta: protectedMeta("more"), Data: map[string][]byte{"values.yaml": []byte("replicas: 4\npage: {title: from-secret}\n")}})
	w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
		d.DefaultValues = values(t, map[string]any{"replicas": 2, "page": map[string]any{"title": "from-definition", "text": "from-definition"}})
		d.Versions[0].Template.Values = values(t, map[string]any{"replicas": 3, "hook": map[string]any{"enabled": false}})
	})
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "Secret", Name: "more"}}
		s.Values = values(t, map[string]any{"page": map[string]any{"text": "{{ .Release.Name }}"}})
	}))
	assert.EqualValues(t, 4, *w.deployment("web").Spec.Replicas, "the installation's values are the last")
	assert.Contains(t, w.page("web"), "from-secret")
	assert.Contains(t, w.page("web"), "{{ .Release.Name }}", "values are data and never executed")

	secret := &corev1.Secret{}
	require.True(t, w.Exists(secret, "more"))
	secret.Data["values.yaml"] = []byte("replicas: 1\n")
	require.NoError(t, w.Client.Update(t.Context(), secret))
	hub.Await(w.World, inst, "the changed Secret is taken up", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release.Revision == 2 && conditions.IsReady(i)
	})
	assert.EqualValues(t, 1, *w.deployment("web").Spec.Replicas)
	assert.Contains(t, w.page("web"), "from-definition")
}

// K36, K37, K38
func TestInstallation_goesToItsNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	target := w.Namespace + "-target"
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) { s.Namespace = &v1alpha1.TargetNamespace{Name: target} })
	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.NamespaceNotFoundReason), target, "it is not made without being asked for")

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.Namespace = &v1alpha1.TargetNamespace{Name: target, Create: true, Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"}}
	})
	hub.AwaitReady(w.World, inst)
	namespace := &corev1.Namespace{}
	require.True(t, w.ExistsIn("", namespace, target))
	assert.Equal(t, "a", namespace.Labels["team"])
	assert.Equal(t, "b", namespace.Annotations["note"])
	assert.True(t, w.ExistsIn(target, &appsv1.Deployment{}, "web"))
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.True(t, w.ExistsIn("", namespace, target), "a namespace is never deleted: others may have moved in")
}

// C55: a second claimant of a name is refused, and takes nothing over.
func TestInstallation_secondClaimantIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	hub.AwaitReady(w.World, w.install(nil))
	other := &v1alpha1.ApplicationInstallation{ObjectMeta: objectMeta("web")}
	other.Namespace = w.Cluster.Namespace(t)
	other.Spec = v1alpha1.ApplicationInstallationSpec{
		ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.1.0"},
		Namespace:      &v1alpha1.TargetNamespace{Name: w.Namespace},
	}
	w.Create(other)
	hub.AwaitReason(w.World, other, v1alpha1.ReleaseConflictReason)
	assert.Len(t, w.releases("web"), 1)

	require.NoError(t, w.Client.Delete(t.Context(), other))
	require.True(t, w.Eventually(func() bool { return !w.ExistsIn(other.Namespace, other, "web") }))
	assert.Len(t, w.releases("web"), 1, "what it did not install it does not uninstall")
}

// What is orphaned stays as it is, for another tool to manage.
func TestInstallation_isOrphaned(t *testing.T) {
	t.Parallel()
	for method, define := range map[v1alpha1.Method]func(*world){
		v1alpha1.MethodHelm: func(w *world) { w.define(nil) },
		v1alpha1.MethodKustomize: func(w *world) {
			w.kustomizations(map[string]string{"1.0.0/web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"})
		},
	} {
		t.Run(string(method), func(t *testing.T) {
			w := newWorld(t)
			define(w)
			inst := hub.AwaitReady(w.World, w.install(nil))
			require.True(t, w.Exists(&v1alpha1.Application{}, "web"))
			installed := &corev1.ConfigMap{}
			require.True(t, w.Exists(installed, "web"))
			releases := w.releases("web")

			hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeletionPolicy = v1alpha1.InstallationOrphan })
			require.NoError(t, w.Client.Delete(t.Context(), inst))
			w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
			left := &corev1.ConfigMap{}
			require.True(t, w.Exists(left, "web"))
			assert.Equal(t, installed, left)
			assert.Equal(t, releases, w.releases("web"))
			assert.False(t, w.Exists(&v1alpha1.Application{}, "web"), "it describes an installation that is gone")
		})
	}
}

// K52: what must not be orphaned is uninstalled, also where admission did not refuse the policy, and it is said
// why.
func TestInstallation_isNotOrphanedWhereItsDefinitionForbidsIt(t *testing.T) {
	w := newWorld(t)
	definition := w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.DeletionPolicy = v1alpha1.InstallationOrphan
	}))
	hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) { d.Spec.ForbidOrphan = true })
	app := &v1alpha1.Application{}
	require.True(t, w.Exists(app, "web"))
	hub.Change(w.World, app, func(a *v1alpha1.Application) { a.Finalizers = []string{"example.com/held"} })
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	why := `spec.deletionPolicy: ApplicationDefinition "` + w.Namespace + `" forbids Orphan (spec.forbidOrphan): what is installed is uninstalled with the installation`
	hub.Await(w.World, inst, "its condition does not say why", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.GetReason(i, v1alpha1.ReadyCondition) == v1alpha1.DeletingReason &&
			strings.HasSuffix(conditions.GetMessage(i, v1alpha1.ReadyCondition), "; "+why)
	})
	require.True(t, w.Eventually(func() bool {
		return slices.Contains(strings.Split(w.told(v1alpha1.DeletingReason), "\n"), why)
	}), "no event says why")
	hub.Change(w.World, app, func(a *v1alpha1.Application) { a.Finalizers = nil })
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&appsv1.Deployment{}, "web"))
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "web"))
}

// K52, C47: what a definition forbade when it was last seen is forbidden where it is gone.
func TestInstallation_isNotOrphanedWhereItsDefinitionForbadeIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		forbid bool
	}{{"forbidden", true}, {"allowed", false}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			definition := w.define(func(d *v1alpha1.ApplicationDefinitionSpec) { d.ForbidOrphan = c.forbid })
			inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
				s.DeletionPolicy = v1alpha1.InstallationOrphan
			}))
			require.NoError(t, w.Client.Delete(t.Context(), definition))
			hub.AwaitReason(w.World, inst, v1alpha1.DefinitionGoneReason)
			require.NoError(t, w.Client.Delete(t.Context(), inst))
			w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
			assert.Equal(t, !c.forbid, w.Exists(&corev1.ConfigMap{}, "web"))
		})
	}
}

// K53, C34: what was installed goes also where Helm's record of it is gone.
func TestInstallation_isUninstalledWithoutItsRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	for _, secret := range w.releases("web") {
		require.NoError(t, w.Client.Delete(t.Context(), &secret))
	}
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&appsv1.Deployment{}, "web"))
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "web"))
	assert.False(t, w.Exists(&v1alpha1.Application{}, "web"))
}
