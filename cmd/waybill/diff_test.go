package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/test/env"
)

// delivered applies manifests as a GitSync of the hub does.
func delivered(t *testing.T, cluster *env.Cluster, owner apply.Owner, manifests ...string) {
	t.Helper()
	c := clientOf(t, cluster)
	for _, text := range manifests {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
		if owner.Name != "" {
			object.SetLabels(map[string]string{v1alpha1.OwnerHashLabel: owner.Hash()})
			annotations := object.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[v1alpha1.OwnerAnnotation] = owner.String()
			object.SetAnnotations(annotations)
		}
		require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(v1alpha1.FieldManager)))
	}
}

// write writes files below a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

func configMapYAML(namespace, name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: " + namespace + ", name: " + name + "}\ndata: {key: " + value + "}\n"
}

// P9, C53: what a push would change in each cluster, and that foreign and kept objects stay.
func TestDiff_ofGitSync(t *testing.T) {
	hubCluster, userCluster := hub(t), user(t)
	h := clientOf(t, hubCluster)
	system, apps := hubCluster.Namespace(t), userCluster.Namespace(t)
	engage(t, h, system, "berlin", userCluster.Kubeconfig())
	engage(t, h, system, "dublin", deadKubeconfig(t, userCluster))
	gs := gitSync(system, "team-a")
	gs.Spec.ClusterSelector = &metav1.LabelSelector{}
	owner := apply.Owner{HubID: "id", Kind: v1alpha1.GitSyncKind, Namespace: system, Name: "team-a"}
	delivered(t, userCluster, owner, configMapYAML(apps, "same", "a"), configMapYAML(apps, "changed", "a"), configMapYAML(apps, "gone", "a"),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: "+apps+", name: kept, annotations: {apps.waybill.dev/prune: disabled}}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {namespace: "+apps+", name: secret}\ndata: {password: aHVudGVyMg==, user: YQ==}\n")
	delivered(t, userCluster, apply.Owner{}, configMapYAML(apps, "foreign", "a"))
	gs.Status.Inventory = &v1alpha1.Inventory{}
	for _, id := range []string{"same__ConfigMap", "changed__ConfigMap", "gone__ConfigMap", "kept__ConfigMap", "secret__Secret"} {
		gs.Status.Inventory.Entries = append(gs.Status.Inventory.Entries, v1alpha1.InventoryEntry{ID: apps + "_" + id, Version: "v1"})
	}
	create(t, h, gs)

	dir := write(t, map[string]string{
		"same.yaml":    configMapYAML(apps, "same", "a"),
		"changed.yaml": configMapYAML(apps, "changed", "b"),
		"new.yaml":     configMapYAML(apps, "new", "b"),
		"foreign.yaml": configMapYAML(apps, "foreign", "b"),
		"secret.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {namespace: " + apps + ", name: secret}\nstringData: {password: hunter3, user: a}\n",
		"nowhere.yaml": configMapYAML("no-such-namespace", "early", "b"),
		"broken.yaml":  "apiVersion: v1\nkind: Service\nmetadata: {namespace: " + apps + ", name: broken}\nspec: {ports: [{port: 70000}]}\n",
	})
	got := waybill(t, hubCluster, "diff", "gitsync/team-a", "-n", system, "--system-namespace", system, "--path", dir)
	require.Equal(t, 2, got.code, got.errOut)
	golden(t, "diff/gitsync.golden", strings.ReplaceAll(got.out, apps, "APPS"))
	assert.Contains(t, got.errOut, "warning: cluster dublin is left out: ")
	assert.Contains(t, got.errOut, "1 created, 2 changed, 1 deleted, 3 refused, 2 as they are\nerror: the comparison is not complete: 1 left out\n")
	assert.NotContains(t, got.out, "hunter")
	assert.NotContains(t, got.out, "aHVudGVy")

	got = waybill(t, hubCluster, "diff", "gitsync/team-a", "-n", system, "--path", write(t, map[string]string{"README.md": "nothing"}))
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "holds no manifest, and spec.allowEmpty is not set: nothing would be applied or deleted")
}

// releaseTarget is a cluster as the release engine wants it.
type releaseTarget struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
}

func (r *releaseTarget) Config() *rest.Config                          { return r.config }
func (r *releaseTarget) Discovery() discovery.CachedDiscoveryInterface { return r.discovery }
func (r *releaseTarget) Mapper() meta.RESTMapper                       { return r.mapper }

// K50, C33: what another version, or other values, would change in a release that is there.
func TestDiff_ofRelease(t *testing.T) {
	s := newSources(t)
	userCluster := user(t)
	u := clientOf(t, userCluster)
	apps := userCluster.Namespace(t)
	web := &v1alpha1.ApplicationDefinition{}
	readYAML(t, s.path("catalog", "web.yaml"), web)
	web.Name = apps // definitions are shared by all tests
	inst := installation(apps, "web", apps, "1.0.0")
	inst.Spec.ValuesBlock = "hook: {enabled: false}"
	inst.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Namespace: apps, Revision: 1}
	create(t, u, web, inst, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: apps, Name: v1alpha1.HubConfigMap}, Data: map[string]string{v1alpha1.HubIDKey: "the-hub"},
	})
	at := []string{"-n", apps, "--system-namespace", apps}

	got := waybill(t, userCluster, append([]string{"diff", "installation/web"}, at...)...)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.errOut, "3 created, 0 changed", "of a release that is not there, all is new")

	installWeb(t, userCluster, apps)
	got = waybill(t, userCluster, append([]string{"diff", "installation/web"}, at...)...)
	assert.Equal(t, 0, got.code, got.out)
	assert.Empty(t, got.out)
	assert.Contains(t, got.errOut, "0 created, 0 changed, 0 deleted, 0 refused, 3 as they are\n")

	got = waybill(t, userCluster, append([]string{"diff", "installation/web", "--version", "1.1.0"}, at...)...)
	assert.Equal(t, 1, got.code, got.errOut)
	golden(t, "diff/release.golden", strings.ReplaceAll(got.out, apps, "APPS"))

	file := write(t, map[string]string{"web.yaml": `
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: web}
spec:
  applicationRef: {name: ` + apps + `, version: 1.0.0}
  valuesBlock: "hook: {enabled: false}\nreplicas: 3"
`})
	got = waybill(t, userCluster, append([]string{"diff", "-f", file, "-o", "json"}, at...)...)
	assert.Equal(t, 1, got.code, got.errOut)
	var results []struct{ Cluster, Kind, Name, Action, Diff string }
	require.NoError(t, json.Unmarshal([]byte(got.out), &results))
	require.Len(t, results, 2, "the installation, and the Deployment of its release: %s", got.out)
	assert.Equal(t, "ApplicationInstallation", results[0].Kind)
	assert.Equal(t, "Deployment", results[1].Kind)
	assert.Equal(t, "changed", results[1].Action)
	assert.Contains(t, results[1].Diff, "-  replicas: 2\n+  replicas: 3\n")

	live := &v1alpha1.ApplicationInstallation{}
	require.NoError(t, u.Get(t.Context(), client.ObjectKeyFromObject(inst), live))
	assert.Equal(t, inst.Spec, live.Spec, "nothing was written")
}

// installWeb installs the chart, with more templates, as waybill-sync does, and returns what it notes of the release.
func installWeb(t *testing.T, cluster *env.Cluster, namespace string, more ...*chart.File) *v1alpha1.ReleaseStatus {
	t.Helper()
	web, err := loader.LoadDir("../../examples/charts/web")
	require.NoError(t, err)
	web.Metadata.Version, web.Metadata.AppVersion = "1.0.0", "1.28"
	web.Templates = append(web.Templates, more...)
	return install(t, cluster, namespace, web, map[string]any{"hook": map[string]any{"enabled": false}})
}

// install installs a chart under its name, as waybill-sync does, and returns what it notes of the release.
func install(t *testing.T, cluster *env.Cluster, namespace string, c *chart.Chart, values map[string]any) *v1alpha1.ReleaseStatus {
	t.Helper()
	config := cluster.RESTConfig()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	cached := memory.NewMemCacheClient(client)
	owner := apply.Owner{HubID: "the-hub", Kind: v1alpha1.ApplicationInstallationKind, Namespace: namespace, Name: c.Name()}
	result, err := release.NewEngine().Ensure(t.Context(), &releaseTarget{config, cached, restmapper.NewDeferredDiscoveryRESTMapper(cached)}, release.Desired{
		Identity: release.Identity{Namespace: namespace, Name: c.Name(), Owner: owner.String(), OwnerHash: owner.Hash()},
		Chart:    c, ChartDigest: "sha256:" + c.Name(), Values: values, Options: release.Options{CRDs: v1alpha1.CRDSkip},
	})
	require.NoError(t, err)
	return &result.Release
}

// C25: an installation of a kustomization, into a namespace that is made for it.
func TestDiff_ofKustomization(t *testing.T) {
	s := newSources(t)
	userCluster := user(t)
	u := clientOf(t, userCluster)
	apps := userCluster.Namespace(t)
	secret := &corev1.Secret{}
	readYAML(t, s.path("credentials", "git.yaml"), secret)
	secret.Namespace = apps
	inst := installation(apps, "guestbook", "guestbook", "5.0.0")
	inst.Spec.Namespace = &v1alpha1.TargetNamespace{Name: apps + "-made", Create: true, Labels: map[string]string{"team": "b"}}
	create(t, u, inst, secret)

	got := waybill(t, userCluster, "diff", "installation/guestbook", "-n", apps, "--system-namespace", apps, "--definition", s.path("catalog", "guestbook.yaml"))
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.errOut, "6 created, 0 changed, 0 deleted, 0 refused, 0 as they are\n")
	assert.Contains(t, got.out, "# Namespace "+apps+"-made in user: created\n")
	assert.Contains(t, got.out, "+    apps.waybill.dev/release: guestbook\n")
}

func TestDiff_refuses(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c, installation(namespace, "web", "no-such-definition", "1.0.0"), gitSync(namespace, "site"))
	cases := map[string]struct {
		args []string
		want string
	}{
		"nothing":                    {nil, "nothing to compare: name a GitSync, an installation or a KubernetesApplication, or give -f FILE"},
		"an object and a file":       {[]string{"gitsync/a", "-f", "."}, "an object of a cluster excludes -f"},
		"a file and a folder":        {[]string{"-f", ".", "--path", "."}, "-f and --path exclude each other"},
		"a folder of an object":      {[]string{"installation/web", "--path", "."}, "--path is for a GitSync"},
		"a version of a GitSync":     {[]string{"gitsync/site", "--version", "1.0.0"}, "--version and --values are for installations"},
		"a kind that delivers none":  {[]string{"application/none"}, "get Application/none in " + namespace},
		"a definition that is not":   {[]string{"installation/web"}, `ApplicationInstallation/web in ` + namespace + `: get ApplicationDefinition no-such-definition from user`},
		"files that cannot be used":  {[]string{"-f", "testdata/validate/repository/plain.yaml"}, `plain.yaml:15: ConfigMap once: key "a" occurs twice in one object`},
		"values that are not values": {[]string{"installation/web", "--values", "testdata/validate/repository.golden"}, "is not a YAML mapping of names to values"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := waybill(t, cluster, append([]string{"diff", "-n", namespace}, tc.args...)...)
			assert.Equal(t, 2, got.code)
			assert.Contains(t, got.errOut, tc.want)
		})
	}
}
