package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// K16, K17, K20, K23, K25, K48, K54, C26, C59: installations of examples/ from all three
// sources and by both methods, without a cluster.
func TestRender_installationsFromFiles(t *testing.T) {
	s := newSources(t)
	t.Setenv("KUBECONFIG", "/does/not/exist")
	for _, name := range []string{"team-a/web", "team-a/wordpress", "team-b/widgets", "team-b/guestbook"} {
		t.Run(name, func(t *testing.T) {
			app := filepath.Base(name)
			got := waybillWith(t, "", "render", "-f", s.path("installations", filepath.Dir(name)+"/"+app+".yaml"),
				"--definition", s.path("catalog", app+".yaml"), "--definition", s.path("credentials", "git.yaml"),
				"--definition", s.path("installations", "team-a", "wordpress-values.yaml"))
			require.Equal(t, 0, got.code, got.errOut)
			golden(t, "render/"+app+".golden", got.out)
			assert.NotContains(t, got.out, "change-me")
		})
	}
}

func TestRender_otherVersionAndValues(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(values, []byte("replicas: 7\n"), 0o600))
	args := []string{"render", "--offline", "-f", "../../examples/installations/team-a/web.yaml", "--definition", "../../examples/catalog",
		"--source", "https://charts.example.com=../../examples/charts", "--version", "1.1.0"}

	got := waybillWith(t, "", append(args, "--values", values)...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "image: nginx:1.29-alpine")
	assert.Contains(t, got.out, "replicas: 7")

	got = waybillWith(t, "", append(args, "--version", "2.0.0")...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "ApplicationInstallation/web in team-a: ApplicationDefinition web has no version 2.0.0: it offers 1.0.0, 1.1.0")

	require.NoError(t, os.WriteFile(values, []byte("replicas: many\n"), 0o600))
	got = waybillWith(t, "", append(args, "--values", values)...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "replicas", "the chart's schema names the value")
}

func TestRender_folders(t *testing.T) {
	got := waybillWith(t, "", "render", "--path", "../../examples/kustomize/guestbook/overlays/production", "-o", "name")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, 5, strings.Count(got.out, "\n"), got.out)

	got = waybillWith(t, "", "render", "--path", "../../examples/charts/web", "--name", "mine", "-n", "there", "-o", "json")
	require.Equal(t, 0, got.code, got.errOut)
	var list struct {
		Items []metav1.PartialObjectMetadata
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &list))
	require.Len(t, list.Items, 4)
	assert.Equal(t, "mine", list.Items[0].Name)

	got = waybillWith(t, "", "render", "--path", "testdata/validate/repository")
	assert.Equal(t, 1, got.code, "what could not be used is told")
	assert.Contains(t, got.errOut, `error: testdata/validate/repository/plain.yaml:15: ConfigMap once: key "a" occurs twice in one object`)
	assert.Contains(t, got.errOut, "testdata/validate/repository/charts/web/Chart.yaml: the folder is a Helm chart", "a GitSync applies no charts")
}

func TestRender_secretsOnlyWhenAsked(t *testing.T) {
	manifest := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n"
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(manifest), 0o600))
	assert.NotContains(t, waybillWith(t, "", "render", "--path", dir).out, "hunter2")
	assert.Contains(t, waybillWith(t, "", "render", "--path", dir, "--show-secrets").out, "hunter2")
}

// C45: live installations resolve from the hub, values come from the user cluster.
func TestRender_fromClusters(t *testing.T) {
	s := newSources(t)
	hubCluster, userCluster := hub(t), user(t)
	h, u := clientOf(t, hubCluster), clientOf(t, userCluster)
	system, apps := hubCluster.Namespace(t), userCluster.Namespace(t)
	engage(t, h, system, "berlin", userCluster.Kubeconfig())
	web := &v1alpha1.ApplicationDefinition{}
	readYAML(t, s.path("catalog", "web.yaml"), web)
	web.Name = system // definitions are shared by all tests
	create(t, h, web)
	inst := installation(apps, "web", system, "1.0.0")
	inst.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "values"}}
	create(t, u, inst, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: apps, Name: "values", Labels: map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}},
		Data:       map[string]string{"values.yaml": "page: {title: From the user cluster}"},
	})

	got := waybill(t, hubCluster, "render", "installation/web", "-n", apps, "--cluster", system+"/berlin")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "<title>From the user cluster</title>")

	got = waybill(t, userCluster, "render", "installation/web", "-n", apps)
	assert.Equal(t, 2, got.code, "the user cluster has no such definition")
	assert.Contains(t, got.errOut, "get ApplicationDefinition "+system+" from user, as it is not among the files")

	gs := gitSync(system, "team-a")
	gs.Spec.URL, gs.Spec.Path, gs.Spec.SecretRef = s.repo.URL(), "installations/team-a", &v1alpha1.LocalReference{Name: "git-examples"}
	secret := &corev1.Secret{}
	readYAML(t, s.path("credentials", "git.yaml"), secret)
	secret.Namespace = system
	create(t, h, gs, secret)
	got = waybill(t, hubCluster, "render", "gitsync/team-a", "-n", system, "-o", "name")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "Namespace team-a\nApplicationInstallation.apps.waybill.dev team-a/web\nSecret team-a/wordpress-values\nApplicationInstallation.apps.waybill.dev team-a/wordpress\n", got.out)

	require.NoError(t, h.Delete(t.Context(), secret))
	got = waybill(t, hubCluster, "render", "gitsync/team-a", "-n", system)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "spec.secretRef: Secret "+system+"/git-examples does not exist")
}

func readYAML(t *testing.T, path string, into client.Object) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(content, into))
}

func TestRender_refuses(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist")
	web := "../../examples/installations/team-a/web.yaml"
	cases := map[string]struct {
		args []string
		want string
	}{
		"nothing":                     {nil, "nothing to render: name an installation or a GitSync, or give -f FILE or --path FOLDER"},
		"a path and a file":           {[]string{"--path", ".", "-f", web}, "[filename path] were all set"},
		"an object and a file":        {[]string{"gitsync/a", "-f", web}, "an object of a cluster excludes -f and --path"},
		"values without a chart":      {[]string{"--path", "testdata", "--values", web}, "--values and --kube-version are for charts: testdata holds no Chart.yaml"},
		"a path and a definition":     {[]string{"--path", ".", "--definition", web}, "--path excludes --version and --definition"},
		"no cluster and one":          {[]string{"--offline", "--cluster", "berlin", "-f", web}, "--offline and --cluster exclude each other"},
		"an object without a cluster": {[]string{"gitsync/a"}, "stat /does/not/exist: no such file or directory"},
		"a definition that is not":    {[]string{"-f", web}, "ApplicationDefinition web is not among the files: give its file with --definition"},
		"a secret that is not": {
			[]string{"-f", "../../examples/installations/team-a/wordpress.yaml", "--definition", "../../examples/catalog"},
			"spec.valuesFrom[0]: Secret team-a/wordpress-values is not among the files: give its file with -f",
		},
		"files with nothing to render": {[]string{"-f", "../../examples/catalog/web.yaml"}, "neither an ApplicationInstallation nor a GitSync"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := waybillWith(t, "", append([]string{"render"}, tc.args...)...)
			assert.Equal(t, 2, got.code)
			assert.Contains(t, got.errOut, tc.want)
		})
	}
}

// chartInstallation installs a chart of one template from a git repository into a namespace of a user cluster, by a catalog
// that is a file.
func chartInstallation(t *testing.T, cluster *env.Cluster, template string) (inst *v1alpha1.ApplicationInstallation, chart, catalog string) {
	t.Helper()
	s := newSources(t)
	repo, err := s.git.CreateRepo(t.Context(), "seeing")
	require.NoError(t, err)
	chart = write(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: seeing\nversion: 1.0.0\n", "templates/seen.yaml": template,
		"crds/thing.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n",
	})
	_, err = repo.CommitFS(t.Context(), "", os.DirFS(chart))
	require.NoError(t, err)
	namespace := cluster.Namespace(t)
	secret := &corev1.Secret{}
	readYAML(t, s.path("credentials", "git.yaml"), secret)
	secret.Namespace = namespace
	inst = installation(namespace, "seeing", namespace, "1.0.0")
	inst.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{CRDs: v1alpha1.CRDSkip}}
	create(t, clientOf(t, cluster), inst, secret)
	definition := "apiVersion: apps.waybill.dev/v1alpha1\nkind: ApplicationDefinition\nmetadata: {name: " + namespace + "}\nspec:\n  method: helm\n  allowLookup: true\n  versions:\n" +
		"  - {version: 1.0.0, clusterFacts: true, template: {source: {git: {remote: \"" + repo.URL() + "\", credentials: {secretRef: {name: git-examples}}}}}}\n"
	return inst, chart, write(t, map[string]string{"definition.yaml": definition})
}

// K17, C33: a chart sees the cluster that is named: its APIs, its objects and what the hub says of it.
func TestRender_chartsSeeTheCluster(t *testing.T) {
	cluster := user(t)
	inst, _, catalog := chartInstallation(t, cluster, `
apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data:
  databases: {{ .Capabilities.APIVersions.Has "databases.example.com/v1/Database" | quote }}
  looked-up: {{ (lookup "v1" "ConfigMap" .Release.Namespace "kept").data | default (dict "password" "made") | toJson | quote }}
  cluster: {{ .Values.waybill.cluster.name | quote }}
  released-to: {{ .Release.Namespace }}
`)
	c := clientOf(t, cluster)
	create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inst.Namespace, Name: "kept"}, Data: map[string]string{"password": "old"}},
		&v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: inst.Namespace, Name: "myself"}})
	args := []string{"render", "installation/seeing", "-n", inst.Namespace, "--system-namespace", inst.Namespace, "--definition", catalog}

	got := waybill(t, cluster, args...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "databases: \"true\"\n")
	assert.Contains(t, got.out, `looked-up: '{"password":"old"}'`)
	assert.Contains(t, got.out, "cluster: myself\n", "the hub itself is a cluster, without a kubeconfig")
	assert.NotContains(t, got.out, "CustomResourceDefinition", "its options say that they are skipped")
	assert.Empty(t, got.errOut)

	got = waybill(t, cluster, append(args, "--kube-version", "v1.30.0")...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "databases: \"false\"\n", "another version has other APIs")

	inst.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationInstallationKind}
	nowhere := inst.DeepCopy()
	nowhere.Namespace = ""
	content, err := yaml.Marshal(nowhere)
	require.NoError(t, err)
	file := write(t, map[string]string{"seeing.yaml": string(content)})
	got = waybill(t, cluster, "render", "-f", file, "-n", inst.Namespace, "--system-namespace", inst.Namespace, "--definition", catalog)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "released-to: "+inst.Namespace+"\n", "the command line says where it would be")
	assert.Contains(t, got.out, `looked-up: '{"password":"made"}'`, "the file may be for another cluster")
	assert.Contains(t, got.errOut, "warning: seeing/templates/seen.yaml looks up objects of the cluster, and without one it finds none")
}

// Offline, no kubeconfig is read, not even for the namespace.
func TestRender_offlineWithABrokenKubeconfig(t *testing.T) {
	cluster := user(t)
	inst, chart, catalog := chartInstallation(t, cluster, "{apiVersion: v1, kind: ConfigMap, metadata: {name: seen, namespace: {{ .Release.Namespace }}}}\n")
	secret := &corev1.Secret{}
	require.NoError(t, clientOf(t, cluster).Get(t.Context(), client.ObjectKey{Namespace: inst.Namespace, Name: "git-examples"}, secret))
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	secret.Namespace = "" // so that it is found for any
	inst.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind))
	file := func(object client.Object) string {
		content, err := yaml.Marshal(object)
		require.NoError(t, err)
		return filepath.Join(write(t, map[string]string{"object.yaml": string(content)}), "object.yaml")
	}
	credentials, somewhere, there := file(secret), file(inst), inst.Namespace
	definition, err := os.ReadFile(filepath.Join(catalog, "definition.yaml"))
	require.NoError(t, err)
	_, remote, _ := strings.Cut(string(definition), `remote: "`)
	remote, _, _ = strings.Cut(remote, `"`)
	inst.Namespace = ""
	nowhere := file(inst)
	t.Setenv("KUBECONFIG", filepath.Join(write(t, map[string]string{"kubeconfig": "{"}), "kubeconfig"))
	const byDefault = "warning: rendered for namespace default where nothing names one: offline, no kubeconfig is read; name another one with -n\n"
	for name, tc := range map[string]struct {
		reason    string
		args      []string
		namespace string
		told      string
	}{
		"named in the file":        {"there is nothing to look up", []string{"-f", somewhere}, there, ""},
		"named nowhere":            {"as kubectl does without a kubeconfig", []string{"-f", nowhere}, "default", byDefault},
		"named by a flag":          {"that is no kubeconfig", []string{"-f", nowhere, "-n", "team-b"}, "team-b", ""},
		"of a chart":               {"a release is in a namespace, too", []string{"--path", chart}, "default", byDefault},
		"of a chart, by a flag":    {"that is no kubeconfig", []string{"--path", chart, "-n", "team-b"}, "team-b", ""},
		"of two, and told of once": {"they are the same", []string{"-f", nowhere, "-f", nowhere}, "default", byDefault},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"render", "--offline"}, tc.args...)
			if tc.args[0] == "-f" {
				args = append(args, "-f", credentials, "--definition", catalog, "--source", remote+"="+chart)
			}
			got := waybillWith(t, "", args...)
			assert.Equal(t, 0, got.code, got.errOut)
			assert.Contains(t, got.out, "namespace: "+tc.namespace+"\n", tc.reason)
			told, _, _ := strings.Cut(got.errOut, "warning: facts about the cluster are not known")
			assert.Equal(t, tc.told, told, tc.reason)
		})
	}
}
