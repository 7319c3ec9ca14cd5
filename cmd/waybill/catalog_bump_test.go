package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// fetched returns what a server has at an address.
func fetched(t *testing.T, url string) []byte {
	t.Helper()
	res, err := http.Get(url)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return content
}

// A catalog as people write it, with two definitions, comments, and blank lines.
const writtenCatalog = `# The catalog of the platform team.
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata:
  name: web   # the page

spec:
  defaultVersion: "1.0.0"
  versions:
  # The one that everybody has.
  - version: "1.0.0" # since spring
    deprecated: true
    template:
      source:
        helm:
          url: REPO
          chartName: web
          # Pinned.
          chartVersion: "1.0.0"
      values:
        replicas: 3

  - version: 0.9.0
    template:
      source: {helm: {url: REPO, chartName: web, chartVersion: 0.9.0}}
---
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata:
  name: widgets
spec:
    versions:
      - version: 0.1.0
        template:
          source:
            helm: {url: REGISTRY, chartName: web, chartVersion: 0.1.0, plainHTTP: true}
# The end.
`

// K16, K17, K50: the versions that have appeared since are added to a file, and nothing else of it
// changes.
func TestCatalogBump_ofAFile(t *testing.T) {
	repo := offering(t, env.Access{}, nil, "0.9.0", "0.9.5", "1.0.0", "1.1.0", "1.2.0", "1.3.0-rc.1", "2.0.0")
	registry, err := env.StartRegistry(env.Access{})
	require.NoError(t, err)
	t.Cleanup(registry.Stop)
	for _, version := range []string{"0.1.0", "0.2.0"} {
		_, err = registry.Push("../../examples/charts/web", func(c *chart.Chart) { c.Metadata.Version = version })
		require.NoError(t, err)
	}
	text := strings.NewReplacer("REPO", repo.URL(), "REGISTRY", registry.URL()).Replace(writtenCatalog)
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o640))

	got := waybillWith(t, "", "catalog", "bump", "-f", file, "--constraint", "<2", "--dry-run")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, file+": ApplicationDefinition widgets: would add 0.2.0\n"+file+": ApplicationDefinition web: would add 1.2.0, 1.1.0\n", got.out)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, text, string(content))

	got = waybillWith(t, "", "catalog", "bump", "-f", file, "--constraint", "<2")
	require.Equal(t, 0, got.code, got.errOut)
	want := strings.Replace(text, "  # The one that everybody has.\n", entryOf(repo.URL(), "1.2.0")+entryOf(repo.URL(), "1.1.0")+"  # The one that everybody has.\n", 1)
	want = strings.Replace(want, "      - version: 0.1.0\n", `      - version: 0.2.0
        template:
          source:
            helm: {url: '`+registry.URL()+`', chartName: web, chartVersion: 0.2.0, plainHTTP: true}
      - version: 0.1.0
`, 1)
	content, err = os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, want, string(content))
	checked := waybillWith(t, "", "validate", file)
	assert.Equal(t, 0, checked.code, checked.out)

	got = waybillWith(t, "", "catalog", "bump", "-f", file, "--constraint", "<2")
	assert.Equal(t, 2, strings.Count(got.out, ": no newer versions\n"), got.out)
}

func entryOf(url, version string) string {
	return `  - version: "` + version + `"
    template:
      source:
        helm:
          url: ` + url + `
          chartName: web
          chartVersion: "` + version + `"
      values:
        replicas: 3
`
}

// K16, K31: so are they to a definition of the hub, unless git owns it.
func TestCatalogBump_ofTheHub(t *testing.T) {
	repo := offering(t, env.Access{}, nil, "1.0.0", "1.1.0", "1.2.0", "1.3.0")
	cluster, c := hub(t), clientOf(t, hub(t))
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "bump-" + cluster.Namespace(t)}}
	d.Spec.DefaultVersion = "1.0.0"
	d.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: "1.0.0", Deprecated: true, Template: &v1alpha1.ApplicationTemplate{
		Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: repo.URL(), ChartName: "web", ChartVersion: "1.0.0"}},
		Values: raw(t, map[string]any{"replicas": 3}),
	}}}
	create(t, c, d)
	got := waybill(t, cluster, "catalog", "bump", d.Name, "--limit", "2")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "ApplicationDefinition/"+d.Name+": added 1.3.0, 1.2.0\n", got.out)
	assert.Contains(t, got.errOut, "1 older version left out")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	assert.Equal(t, []string{"1.3.0", "1.2.0", "1.0.0"}, versionsIn(d))
	assert.Equal(t, "1.0.0", d.Spec.DefaultVersion)
	assert.False(t, d.Spec.Versions[0].Deprecated)
	assert.True(t, d.Spec.Versions[2].Deprecated)
	assert.Equal(t, "1.3.0", d.Spec.Versions[0].Template.Source.Helm.ChartVersion)
	assert.JSONEq(t, `{"replicas": 3}`, string(d.Spec.Versions[0].Template.Values.Raw))

	_, err := repo.Push("../../examples/charts/web", func(c *chart.Chart) { c.Metadata.Version = "1.4.0" })
	require.NoError(t, err)
	d.Annotations = map[string]string{v1alpha1.OwnerAnnotation: "hub/GitSync/none/catalog"}
	require.NoError(t, c.Update(t.Context(), d))
	got = waybill(t, cluster, "catalog", "bump", d.Name)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "is delivered by GitSync none/catalog, which puts back what git says: change its manifest in the repository of GitSync none/catalog instead")
	got = waybill(t, cluster, "catalog", "bump", d.Name, "--force")
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "added 1.4.0")
}
