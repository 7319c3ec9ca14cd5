package applicationinstallation_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// only makes a definition of one version with that source.
func only(source v1alpha1.ApplicationSource) func(*v1alpha1.ApplicationDefinitionSpec) {
	return func(d *v1alpha1.ApplicationDefinitionSpec) {
		d.Versions = d.Versions[:1]
		d.Versions[0].Template.Source = source
	}
}

// secret creates a Secret of the system namespace, as the platform team would.
func (w *world) secret(data map[string][]byte, annotated bool) v1alpha1.LocalReference {
	w.T.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace, Namespace: hub.SystemNamespace}, Data: data}
	if annotated {
		s.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "test"}
	}
	w.Create(s)
	return v1alpha1.LocalReference{Name: s.Name}
}

// kustomizations defines the versions 1.0.0 and 1.1.0 with method kustomize, each a folder of
// that name in a repository with these files. It returns the repository, and its server.
func (w *world) kustomizations(files map[string]string) (*env.GitRepo, *env.GitServer) {
	w.T.Helper()
	server, repo := hub.NewRepo(w.T)
	_, err := repo.Commit(w.T.Context(), files)
	require.NoError(w.T, err)
	credentials := &v1alpha1.SourceCredentials{SecretRef: w.secret(map[string][]byte{"ca.crt": hub.Authority(w.T)}, true)}
	w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
		d.Method = v1alpha1.MethodKustomize
		for i := range d.Versions {
			d.Versions[i].Template.Source = v1alpha1.ApplicationSource{
				Git: &v1alpha1.GitSource{Remote: repo.URL(), Path: d.Versions[i].Version, Credentials: credentials},
			}
		}
	})
	return repo, server
}

// K17
func TestInstallation_fromARegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registry, err := env.StartRegistry(env.Access{})
	require.NoError(t, err)
	t.Cleanup(registry.Stop)
	_, err = registry.Push(charts + "widgets")
	require.NoError(t, err)
	w.define(only(v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{
		URL: registry.URL(), ChartName: "widgets", ChartVersion: chartVersion(t, "widgets"), PlainHTTP: true,
	}}))
	inst := hub.AwaitReady(w.World, w.install(nil))
	assert.Contains(t, inst.Status.Release.Chart, "widgets-")
}

// K20, K23, K24, K54: a chart in a folder of a repository, with the dependency beside it.
func TestInstallation_fromGitWithDependencies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, repo := hub.NewRepo(t)
	_, err := repo.CommitFS(t.Context(), "", os.DirFS("../../../examples"))
	require.NoError(t, err)
	credentials := &v1alpha1.SourceCredentials{SecretRef: w.secret(map[string][]byte{"ca.crt": hub.Authority(t)}, true)}
	w.define(only(v1alpha1.ApplicationSource{Git: &v1alpha1.GitSource{
		Remote: repo.URL(), Ref: &v1alpha1.GitReference{Branch: "main"}, Path: "charts/wordpress", Credentials: credentials,
	}}))
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(t, map[string]any{"mysql": map[string]any{"auth": map[string]any{"password": "test"}}})
	}))
	assert.Contains(t, inst.Status.Application.Revision, "main@sha1:")
	sets := &appsv1.StatefulSetList{}
	require.NoError(t, w.Client.List(t.Context(), sets, inNamespace(w)))
	assert.Len(t, sets.Items, 2, "WordPress and the MySQL that it depends on")
}

// C25, K26: another method is another implementation of the same few functions.
func TestInstallation_ofAKustomization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo, _ := w.kustomizations(map[string]string{
		"1.0.0/kustomization.yaml": "resources: [cm.yaml]\nnamePrefix: my-\n",
		"1.0.0/cm.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {key: one}\n",
	})
	inst := hub.AwaitReady(w.World, w.install(nil))
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "my-cm"))
	assert.EqualValues(t, 2, inst.Status.Inventory.Count, "the object and the Application")
	require.True(t, w.Exists(&v1alpha1.Application{}, "web"))

	_, err := repo.Commit(t.Context(), map[string]string{"1.0.0/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {key: two}\n"})
	require.NoError(t, err)
	hub.Reconcile(w.World, inst)
	require.True(t, w.Eventually(func() bool { return w.Exists(cm, "my-cm") && cm.Data["key"] == "two" }), "a moving branch is followed")

	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "my-cm")
	w.awaitCorrected("ConfigMap " + w.Namespace + "/my-cm was missing")
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(cm, "my-cm"))
}

// K18, K55, K56
func TestInstallation_needsTheCredentialsOfItsSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo, err := env.StartHelmRepo(env.Access{Username: "platform", Password: "secret-word", TLS: true})
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	_, err = repo.Push(charts + "web")
	require.NoError(t, err)
	data := map[string][]byte{"username": []byte("platform"), "password": []byte("secret-word"), "ca.crt": hub.Authority(t)}
	ref := w.secret(data, false)
	source := v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{
		URL: repo.URL(), ChartName: "web", ChartVersion: chartVersion(t, "web"), Credentials: &v1alpha1.SourceCredentials{SecretRef: ref},
	}}
	w.define(only(source))
	inst := w.install(nil)
	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.InvalidSecretReason), v1alpha1.SecretTypeAnnotation, "not just any Secret of ours")

	stored := &corev1.Secret{}
	require.True(t, w.ExistsIn(hub.SystemNamespace, stored, ref.Name))
	stored.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "helm"}
	stored.Data["password"] = []byte("wrong-word")
	require.NoError(t, w.Client.Update(t.Context(), stored))
	message := hub.AwaitReason(w.World, inst, v1alpha1.SourceAuthenticationFailedReason)
	assert.NotContains(t, message, "wrong-word")

	stored.Data["password"] = []byte("secret-word")
	require.NoError(t, w.Client.Update(t.Context(), stored))
	hub.AwaitReady(w.World, inst)
}

func TestInstallation_saysWhatIsWrongWithTheChart(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.ApplicationDefinitionSpec)
		want   string
		says   string
	}{
		"no such version": {
			"the versions that there are are named", func(d *v1alpha1.ApplicationDefinitionSpec) {
				d.Versions[0].Template.Source.Helm.ChartVersion = "9.9.9"
			}, v1alpha1.ChartNotFoundReason, "1.1.0",
		},
		"no such chart": {
			"the chart is named", func(d *v1alpha1.ApplicationDefinitionSpec) {
				d.Versions[0].Template.Source.Helm.ChartName = "nope"
			}, v1alpha1.ChartNotFoundReason, "nope",
		},
		"values of the wrong type": {
			"the schema of the chart speaks", func(d *v1alpha1.ApplicationDefinitionSpec) {
				d.DefaultValues = values(t, map[string]any{"replicas": "many"})
			}, v1alpha1.InvalidValuesReason, "replicas",
		},
		"dead server": {
			"the server is named", func(d *v1alpha1.ApplicationDefinitionSpec) {
				d.Versions[0].Template.Source.Helm.URL = "http://127.0.0.1:1/charts"
			}, v1alpha1.SourceUnreachableReason, "127.0.0.1:1",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.define(c.change)
			inst := w.install(nil)
			assert.Contains(t, hub.AwaitReason(w.World, inst, c.want), c.says, c.reason)
			require.NoError(t, w.Client.Delete(t.Context(), inst))
			w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
		})
	}
}
