package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// golden compares with a file of testdata; UPDATE_GOLDEN=1 rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// P2, P5, P12, K19, K27: the rules of the API and of the webhook, with file and line.
func TestValidate_folder(t *testing.T) {
	got := waybillWith(t, "", "validate", "testdata/validate/repository")
	assert.Equal(t, 1, got.code)
	golden(t, "validate/repository.golden", got.out+"\n"+got.errOut)
}

func TestValidate_examplesAreValid(t *testing.T) {
	got := waybillWith(t, "", "validate", "../../examples")
	assert.Equal(t, 0, got.code, got.out)
	for line := range strings.Lines(got.out) {
		assert.Contains(t, line, "/Chart.yaml: warning: the folder is a Helm chart", "nothing else is to be said")
	}
	assert.Contains(t, got.errOut, ": 0 errors, ")
}

func TestValidate_standardInput(t *testing.T) {
	content, err := os.ReadFile("testdata/validate/repository/sync.yaml")
	require.NoError(t, err)
	got := waybillWith(t, string(content), "validate", "-")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.out, "-:8: GitSync waybill-system/catalog: spec.interval: ")
}

func TestValidate_forPrograms(t *testing.T) {
	got := waybillWith(t, "", "validate", "testdata/validate/repository/overlay", "-o", "json")
	assert.Equal(t, 1, got.code)
	var report struct {
		Checked  int
		Findings []struct{ File, Kind, Name, Field, Severity string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	assert.Equal(t, 1, report.Checked)
	require.Len(t, report.Findings, 1)
	assert.Equal(t, "my-shop", report.Findings[0].Name, "what kustomize builds is what is checked")
	assert.Equal(t, "spec.selector", report.Findings[0].Field)
	assert.Equal(t, "error", report.Findings[0].Severity)
}

func TestValidate_warnings(t *testing.T) {
	deprecated := `
apiVersion: apps.waybill.dev/v1alpha1
kind: GitSync
metadata: {name: plain, namespace: a}
spec: {url: "http://git.example.com/a.git"}
`
	got := waybillWith(t, deprecated, "validate", "-")
	assert.Equal(t, 0, got.code)
	assert.Contains(t, got.out, "-:2: warning: GitSync a/plain: spec.url is not encrypted")
	got = waybillWith(t, deprecated, "validate", "-", "--strict")
	assert.Equal(t, 1, got.code)
}

func TestValidate_refuses(t *testing.T) {
	got := waybillWith(t, "", "validate", "testdata/nowhere")
	assert.Equal(t, 2, got.code)
	assert.Equal(t, "error: no file or folder testdata/nowhere\n", got.errOut)

	got = waybillWith(t, "", "validate", "testdata/validate/repository/charts")
	assert.Equal(t, 0, got.code)
	assert.Contains(t, got.out, "testdata/validate/repository/charts/web/Chart.yaml: warning: the folder is a Helm chart, and is not applied as manifests: to offer it, name it in an ApplicationDefinition")
	assert.Equal(t, 1, strings.Count(got.out, "\n"), "its templates are not read")
}

// P5, K19: a misspelt field of the metadata is dropped by an API server, and the object is another one then.
func TestValidate_unknownMetadata(t *testing.T) {
	misspelt := "apiVersion: apps.waybill.dev/v1alpha1\nkind: GitSync\nmetadata:\n  name: a\n  namspace: b\nspec: {url: \"https://git.example.com/a.git\"}\n"
	got := waybillWith(t, misspelt, "validate", "-")
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Equal(t, "-:5: GitSync a: metadata.namspace: Forbidden: there is no such field\n", got.out)
}

// C59: what a kustomization makes may not be among the plain manifests above it, too. Kustomizations beside one another
// may make the same, from the same files.
func TestValidate_duplicatesOfAKustomization(t *testing.T) {
	files := map[string]string{
		"base/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, namespace: a}\n", "base/kustomization.yaml": "resources: [cm.yaml]\n",
		"one/kustomization.yaml": "resources: [../base]\n", "two/kustomization.yaml": "resources: [../base]\n", ".git/HEAD": "",
	}
	got := waybillWith(t, "", "validate", write(t, files))
	assert.Equal(t, 0, got.code, got.out)

	files["cm.yaml"] = files["base/cm.yaml"]
	folder := write(t, files)
	got = waybillWith(t, "", "validate", folder)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Equal(t, 3, strings.Count(got.out, "the same object is in "), "one, two and base, each with the one above: %s", got.out)
	assert.Contains(t, got.out, folder+"/cm.yaml:1: ConfigMap a/cm: the same object is in "+folder+"/base/cm.yaml too")

	got = waybillWith(t, "", "validate", write(t, map[string]string{
		"settings.yaml":          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
		"sub/kustomization.yaml": "configMapGenerator: [{name: settings, literals: [a=b], options: {disableNameSuffixHash: true}}]\n",
	}))
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Regexp(t, `settings.yaml:1: ConfigMap settings: the same object is in \S+/sub`, got.out, "it is made from no file")
}

// K52: what a definition forbids is refused before a commit, in the words of admission.
func TestValidate_orphan(t *testing.T) {
	const objects = `
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata: {name: web}
spec:
  forbidOrphan: true
  versions: [{version: 1.0.0, template: {source: {helm: {url: "https://charts.example.com", chartName: web, chartVersion: 1.0.0}}}}]
---
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: web, namespace: team-a}
spec:
  applicationRef: {name: web, version: 1.0.0}
  deletionPolicy: Orphan
`
	got := waybillWith(t, objects, "validate", "-")
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, `ApplicationInstallation team-a/web: spec.deletionPolicy: Forbidden: ApplicationDefinition "web" forbids Orphan (spec.forbidOrphan): leave the field out`)
	assert.Equal(t, 1, strings.Count(got.out, "\n"), got.out)
}

// K48: values are checked against the schemas of charts that are at hand, by the rules of admission.
func TestValidate_values(t *testing.T) {
	const catalog, charts = "../../examples/catalog", "https://charts.example.com=../../examples/charts"
	const inst = `
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: web, namespace: team-a}
spec:
  applicationRef: {name: web, version: VERSION}
  values:
    replicas: lots
`
	content := strings.ReplaceAll(inst, "VERSION", "1.1.0")
	got := waybillWith(t, content, "validate", catalog, "-")
	assert.Equal(t, 0, got.code, "nothing is read without being asked to: %s", got.out)

	got = waybillWith(t, content, "validate", catalog, "-", "--source", charts)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.out, "-:8: ApplicationInstallation team-a/web: spec.values.replicas: Invalid value: must be integer, not string (by the schema of web, version 1.1.0)")

	got = waybillWith(t, content, "validate", catalog, "-", "--source", "https://elsewhere.example.com=../../examples/charts")
	assert.Equal(t, 0, got.code)
	assert.Contains(t, got.out, "warning: ")
	assert.Contains(t, got.out, "values are not checked against the schema of the chart: https://charts.example.com is not fetched with --offline")
}
