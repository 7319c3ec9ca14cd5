package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint/support"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"waybill.dev/waybill/test/env"
)

const examples = "../../examples"

// A44, A46, C5: what examples/ shows is what an API server takes, field by field.
func TestExamples_areAcceptedByAnAPIServer(t *testing.T) {
	files := exampleManifests(t)
	require.NotEmpty(t, files)
	a := newExampleApplier(t)
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, examples+"/"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			objects := decodeObjects(t, content)
			require.NotEmpty(t, objects)
			a.apply(t, objects)
		})
	}
}

// C25: a kustomization of examples/ builds, and what it builds is accepted.
func TestExamples_kustomizationsBuild(t *testing.T) {
	a := newExampleApplier(t)
	for _, dir := range exampleFolders(t, "kustomization.yaml") {
		t.Run(strings.TrimPrefix(dir, examples+"/"), func(t *testing.T) {
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
			require.NoError(t, err)
			content, err := built.AsYaml()
			require.NoError(t, err)
			a.apply(t, decodeObjects(t, content))
		})
	}
}

// K5: the catalog for clusters without access to the servers of others names none of them, and is the
// same otherwise: K6, K12-K18, K20-K24, K35-K39 are in it as document K writes them.
func TestExamples_airgappedCatalog(t *testing.T) {
	definitions := func(dir string) map[string]*unstructured.Unstructured {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(examples, "platform", dir))
		require.NoError(t, err)
		content, err := built.AsYaml()
		require.NoError(t, err)
		found := map[string]*unstructured.Unstructured{}
		for _, o := range decodeObjects(t, content) {
			require.Equal(t, "ApplicationDefinition", o.GetKind(), "nothing else goes to the hub")
			found[o.GetName()] = o
		}
		return found
	}
	catalog, airgap := definitions("catalog"), definitions("airgap")
	require.Len(t, catalog, 3)
	require.Len(t, airgap, len(catalog))
	for name, definition := range airgap {
		versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
		require.NoError(t, err)
		require.NotEmpty(t, versions)
		for _, version := range versions {
			source, _, err := unstructured.NestedMap(version.(map[string]any), "template", "source")
			require.NoError(t, err)
			assert.NotContains(t, source, "git", name)
			url, _, _ := unstructured.NestedString(source, "helm", "url")
			assert.Equal(t, "oci://registry.example.com/charts", url, name)
		}
		values, _, err := unstructured.NestedMap(definition.Object, "spec", "defaultValues")
		require.NoError(t, err)
		require.Contains(t, imagesOf, name)
		for _, key := range imagesOf[name] {
			image, _, err := unstructured.NestedString(values, strings.Split(key, ".")...)
			require.NoError(t, err, "%s: %s", name, key)
			assert.Regexp(t, `^registry\.example\.com(/|$)`, image, "%s: %s", name, key)
		}
		before, _, err := unstructured.NestedMap(catalog[name].Object, "spec", "defaultValues")
		require.NoError(t, err)
		assert.Equal(t, chartutil.CoalesceTables(runtime.DeepCopyJSON(before), runtime.DeepCopyJSON(values)), values, "%s: what the catalog sets is set", name)
	}
}

// imagesOf lists the values by which each chart of the catalog says where its images are: those of all its
// workloads, as its values.yaml has them, and of the charts that it depends on.
var imagesOf = map[string][]string{
	"cert-manager": {
		"image.repository", "webhook.image.repository", "cainjector.image.repository", "acmesolver.image.repository", "startupapicheck.image.repository",
	},
	"ingress-nginx": {"global.image.registry"},
	"prometheus-node-exporter": { // which is of chart prometheus
		"server.image.repository", "alertmanager.image.repository", "nodeExporter.image.repository", "pushgateway.image.repository",
		"configmapReload.prometheus.image.repository", "configmapReload.alertmanager.image.repository", "kube-state-metrics.image.repository",
	},
}

// K7, K54: the charts of examples/ lint without a warning, and what they render with the
// least values that they need is accepted.
func TestExamples_chartsLintAndRender(t *testing.T) {
	values := map[string]map[string]any{
		"mysql":     {"auth": map[string]any{"password": "x"}},
		"wordpress": {"mysql": map[string]any{"auth": map[string]any{"password": "x"}}},
	}
	a := newExampleApplier(t)
	for _, dir := range exampleFolders(t, "Chart.yaml") {
		name := filepath.Base(dir)
		t.Run(strings.TrimPrefix(dir, examples+"/"), func(t *testing.T) {
			dir := withDependencies(t, dir)
			for _, message := range action.NewLint().Run([]string{dir}, values[name]).Messages {
				assert.Less(t, message.Severity, support.WarningSev, message.Error())
			}
			a.apply(t, renderChart(t, dir, values[name]))
		})
	}
}

// exampleManifests lists the manifests of examples/: YAML that belongs neither to a
// chart nor to a kustomization.
func exampleManifests(t *testing.T) []string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(examples, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"charts", "kustomize"}, d.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) == ".yaml" && d.Name() != "kustomization.yaml":
			files = append(files, path)
		}
		return nil
	}))
	return files
}

// exampleFolders lists the folders of examples/ that hold a file of that name.
func exampleFolders(t *testing.T, file string) []string {
	t.Helper()
	var dirs []string
	require.NoError(t, filepath.WalkDir(examples, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == file {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	}))
	require.NotEmpty(t, dirs)
	return dirs
}

// withDependencies copies a chart, and into its charts/ the siblings that it names by file://.
func withDependencies(t *testing.T, dir string) string {
	t.Helper()
	chart, err := loader.LoadDir(dir)
	require.NoError(t, err)
	target := filepath.Join(t.TempDir(), filepath.Base(dir))
	require.NoError(t, os.CopyFS(target, os.DirFS(dir)))
	for _, dependency := range chart.Metadata.Dependencies {
		if sibling, ok := strings.CutPrefix(dependency.Repository, "file://"); ok {
			require.NoError(t, os.CopyFS(filepath.Join(target, "charts", dependency.Name), os.DirFS(filepath.Join(dir, sibling))))
		}
	}
	return target
}

// renderChart renders a chart without a cluster, CRDs first.
func renderChart(t *testing.T, dir string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	chart, err := loader.LoadDir(dir)
	require.NoError(t, err)
	install := action.NewInstall(&action.Configuration{Capabilities: chartutil.DefaultCapabilities})
	install.ReleaseName, install.Namespace = "example", "default"
	install.ClientOnly, install.DryRun, install.IncludeCRDs = true, true, true
	release, err := install.RunWithContext(t.Context(), chart, values)
	require.NoError(t, err)
	objects := decodeObjects(t, []byte(release.Manifest))
	for _, hook := range release.Hooks {
		objects = append(objects, decodeObjects(t, []byte(hook.Manifest))...)
	}
	return objects
}

func decodeObjects(t *testing.T, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// exampleApplier applies objects strictly: an unknown field is an error.
type exampleApplier struct {
	cluster *env.Cluster
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

func newExampleApplier(t *testing.T) *exampleApplier {
	t.Helper()
	cluster := env.Shared(t, env.Options{Name: "examples", CRDs: []string{"../../charts/waybill/crds"}})
	clientset, err := kubernetes.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "waybill-system"}}
	if _, err := clientset.CoreV1().Namespaces().Create(t.Context(), system, metav1.CreateOptions{}); err != nil {
		require.True(t, apierrors.IsAlreadyExists(err), err)
	}
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(clientset.Discovery()))
	return &exampleApplier{cluster: cluster, dynamic: client, mapper: mapper}
}

// apply applies the objects; those that name no namespace go to one of the test's own,
// those of a namespace that does not exist have it created.
func (a *exampleApplier) apply(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	namespace := a.cluster.Namespace(t)
	for _, object := range objects {
		mapping := a.mapping(t, object)
		var client dynamic.ResourceInterface = a.dynamic.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if object.GetNamespace() == "" || object.GetNamespace() == "default" {
				object.SetNamespace(namespace)
			}
			a.ensureNamespace(t, object.GetNamespace())
			client = a.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		body, err := json.Marshal(object)
		require.NoError(t, err)
		force := true
		_, err = client.Patch(t.Context(), object.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{
			FieldManager: "examples", Force: &force, FieldValidation: metav1.FieldValidationStrict,
		})
		require.NoError(t, err, "%s %s", object.GetKind(), object.GetName())
	}
}

func (a *exampleApplier) ensureNamespace(t *testing.T, name string) {
	t.Helper()
	body := []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `"}}`)
	namespaces := a.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	_, err := namespaces.Patch(t.Context(), name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "examples"})
	require.NoError(t, err)
}

// mapping waits for the kind of a CRD that has just been applied.
func (a *exampleApplier) mapping(t *testing.T, object *unstructured.Unstructured) *meta.RESTMapping {
	t.Helper()
	gvk := object.GroupVersionKind()
	var mapping *meta.RESTMapping
	require.Eventually(t, func() (found bool) {
		var err error
		if mapping, err = a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			a.mapper.Reset()
		}
		return err == nil
	}, limit, often, "no kind %s", gvk)
	return mapping
}
