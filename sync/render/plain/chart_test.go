package plain_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/plain"
)

const chart = "apiVersion: v2\nname: web\nversion: 1.0.0\n"

func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }

// A chart is one problem, however many of its files are no manifests, and nothing of it is applied.
func TestRender_chartsAreNotApplied(t *testing.T) {
	template := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
	fsys := fstest.MapFS{
		"a.yaml":                     file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
		"web/Chart.yaml":             file(chart),
		"web/values.yaml":            file("replicas: 1\n"),
		"web/templates/plain.yaml":   file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"),
		"web/templates/more.yaml":    file("{{ if .Values.x }}\n" + template + "{{ end }}\n"),
		"web/charts/db/Chart.yaml":   file(chart),
		"kinds/Chart.yaml":           file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: called-chart}\n"),
		"ignored/.waybillignore":     file("Chart.yaml\n"),
		"ignored/Chart.yaml":         file(chart),
		"ignored/templates/one.yaml": file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"),
	}

	objects, problems, err := plain.Render(t.Context(), fsys, plain.Options{Dir: "apps"})

	require.NoError(t, err)
	assert.Equal(t, []string{"a", "one", "called-chart"}, namesOf(objects), "the rest of the folder goes on; what is not taken for a chart is applied")
	assert.Equal(t, []manifest.Problem{{File: "apps/web/Chart.yaml", Reason: manifest.ReasonInvalidManifest, Message: plain.ChartMessage}}, problems)

	var told []string
	_, problems, err = plain.Render(t.Context(), fsys, plain.Options{Chart: func(dir string) { told = append(told, dir) }})
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.Equal(t, []string{"web"}, told)

	objects, problems, err = plain.Render(t.Context(), fstest.MapFS{"Chart.yaml": file(chart), "templates/a.yaml": fsys["a.yaml"]}, plain.Options{})
	require.NoError(t, err)
	assert.Empty(t, objects, "the folder itself may be one")
	assert.Len(t, problems, 1)
}

// What is left out without being asked for is on the page of GitSync.
func TestRender_foldersThatAreIgnored(t *testing.T) {
	manifestOf := func(name string) *fstest.MapFile {
		return file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n")
	}
	objects, problems, err := plain.Render(t.Context(), fstest.MapFS{
		".git/a.yaml": manifestOf("git"), ".github/a.yaml": manifestOf("github"), ".circleci/a.yaml": manifestOf("circleci"),
		".travis.yml": manifestOf("travis"), ".gitlab-ci.yml": manifestOf("gitlab"), "appveyor.yml": manifestOf("appveyor"),
		".drone.yml": manifestOf("drone"), "cloudbuild.yaml": manifestOf("cloudbuild"), "codeship-services.yml": manifestOf("services"),
		"codeship-steps.yml": manifestOf("steps"), ".goreleaser.yml": manifestOf("goreleaser"), ".sops.yaml": manifestOf("sops"), ".flux.yaml": manifestOf("flux"),
		".hidden/a.yaml": manifestOf("hidden"), ".a.yaml": manifestOf("dot"),
	}, plain.Options{})
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.ElementsMatch(t, []string{"hidden", "dot"}, namesOf(objects), "other folders and files whose name begins with a dot count")
}

func namesOf(objects []manifest.Object) []string {
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	return names
}

// What SOPS has encrypted is of no use as it is.
func TestRender_encryptedBySOPS(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: 'ENC[AES256_GCM,data:x]'}\n"
	objects, problems := renderFile(t, "a.yaml", secret+"sops:\n  mac: ENC[x]\n  version: 3.9.0\n", plain.Limits{})
	assert.Empty(t, objects)
	require.Len(t, problems, 1)
	assert.Equal(t, "a", problems[0].ID.Name)
	assert.Equal(t, manifest.EncryptedMessage+" (add it to .waybillignore or to spec.ignore)", problems[0].Message)

	objects, problems = renderFile(t, "a.yaml", "apiVersion: example.com/v1\nkind: Vault\nmetadata: {name: a}\nsops: true\n", plain.Limits{})
	assert.Len(t, objects, 1, "a field may have that name")
	assert.Empty(t, problems)
}
