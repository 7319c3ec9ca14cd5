package kustomize_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/kustomize"
)

// files makes a repository of file names and contents.
func files(content map[string]string) fstest.MapFS {
	fsys := make(fstest.MapFS)
	for name, data := range content {
		fsys[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return fsys
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func render(t *testing.T, fsys fs.FS, l kustomize.Limits) ([]manifest.Object, []manifest.Problem) {
	t.Helper()
	objects, problems, err := kustomize.Render(t.Context(), fsys, "app", kustomize.Options{Limits: l})
	require.NoError(t, err)
	return objects, problems
}

// What would make kustomize reach out of the repository, or run something, is
// refused, wherever it stands.
func TestRender_refusesToLeaveTheRepository(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Path)
		fmt.Fprint(w, configMap)
	}))
	t.Cleanup(server.Close)
	bare := filepath.Join(t.TempDir(), "bait.git")
	require.NoError(t, os.Mkdir(bare, 0o700))
	url := server.URL + "/a.yaml"

	const remote = "is remote, and only this repository is read"
	cases := map[string]struct{ kustomization, want string }{
		"Resource":            {"resources: ['" + url + "']", remote},
		"UpperCase":           {"Resources: ['" + strings.ToUpper(url[:7]) + url[7:] + "']", remote},
		"GitHub":              {"resources: ['github.com/kubernetes-sigs/kustomize/examples/helloWorld?ref=v1.0.6']", remote},
		"GitSSH":              {"resources: ['git@example.com:org/repo']", remote},
		"GitForced":           {"resources: ['git::https://example.com/org/repo']", remote},
		"GitFile":             {"resources: ['file://" + bare + "']", remote},
		"Base":                {"bases: ['" + url + "']", remote},
		"Component":           {"components: ['" + url + "']", remote},
		"CRD":                 {"crds: ['" + url + "']", remote},
		"Configuration":       {"configurations: ['" + url + "']", remote},
		"Patch":               {"resources: [a.yaml]\npatches: [{path: '" + url + "'}]", remote},
		"PatchJSON":           {"resources: [a.yaml]\npatchesJson6902: [{path: '" + url + "', target: {kind: ConfigMap, version: v1, name: a}}]", remote},
		"PatchMerge":          {"resources: [a.yaml]\npatchesStrategicMerge: ['" + url + "']", remote},
		"Replacement":         {"resources: [a.yaml]\nreplacements: [{path: '" + url + "'}]", remote},
		"ConfigMapFile":       {"configMapGenerator: [{name: x, files: ['key=" + url + "']}]", remote},
		"ConfigMapEnv":        {"configMapGenerator: [{name: x, env: '" + url + "'}]", remote},
		"SecretEnvs":          {"secretGenerator: [{name: x, envs: ['" + url + "']}]", remote},
		"OpenAPI":             {"resources: [a.yaml]\nopenapi: {path: '" + url + "'}", "openapi is not supported"},
		"Transformer":         {"resources: [a.yaml]\ntransformers: ['" + url + "']", "run plugins"},
		"InlineTransformer":   {"resources: [a.yaml]\ntransformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, path: \"" + url + "\"}']", "run plugins"},
		"Generator":           {"generators: [exec.yaml]", "run plugins"},
		"Validator":           {"resources: [a.yaml]\nvalidators: [exec.yaml]", "run plugins"},
		"HelmChart":           {"helmCharts: [{name: x, repo: '" + server.URL + "'}]", "ApplicationDefinition"},
		"OldHelmChart":        {"helmChartInflationGenerator: [{chartName: x}]", "ApplicationDefinition"},
		"Nested":              {"resources: [../nested]", remote},
		"LinkedKustomization": {"resources: [../linked]", remote},
		"LinkedComponent":     {"components: [../linked]", remote},
		"LinkedFile":          {"resources: [a.yaml]\npatches: [{path: ../linked/kustomization.yml}]", remote},
		"Parent":              {"resources: [../../etc/passwd]", "etc/passwd: no such file"},
		"Absolute":            {"resources: [/etc]", "absolute"},
		"AbsoluteFile":        {"configMapGenerator: [{name: x, files: [/etc/passwd]}]", "no such file"},
		"Link":                {"configMapGenerator: [{name: x, files: [link]}]", "symbolic link is absolute"},
		"LinkUp":              {"configMapGenerator: [{name: x, files: [link-up]}]", "leads out of the repository"},
		"LinkLoop":            {"configMapGenerator: [{name: x, files: [loop]}]", "limit Links is 40"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			repo := t.TempDir()
			for file, content := range map[string]string{
				"app/kustomization.yaml":    tc.kustomization,
				"app/a.yaml":                configMap,
				"app/exec.yaml":             "apiVersion: x/v1\nkind: Exec\nmetadata: {name: x, annotations: {config.kubernetes.io/function: '{exec: {path: /bin/id}}'}}\n",
				"nested/kustomization.yaml": "resources: ['" + url + "']",
				"linked/real.yaml":          "configMapGenerator: [{name: x, files: ['k=" + url + "']}]",
			} {
				path := filepath.Join(repo, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			}
			require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(repo, "app/link")))
			require.NoError(t, os.Symlink("../../../etc/passwd", filepath.Join(repo, "app/link-up")))
			require.NoError(t, os.Symlink("loop", filepath.Join(repo, "app/loop")))
			require.NoError(t, os.Symlink("real.yaml", filepath.Join(repo, "linked/kustomization.yml")))

			objects, problems := render(t, os.DirFS(repo), kustomize.Limits{})

			assert.Empty(t, objects)
			require.Len(t, problems, 1)
			assert.ErrorContains(t, problems[0], tc.want)
			assert.NotContains(t, problems[0].Message, "root:", "nothing of /etc/passwd")
		})
	}
	assert.Empty(t, requests)
}

// A kustomization is one by the name that kustomize asks for, not by where a link of that name leads.
func TestRender_linkedKustomizationIsCheckedAsAnyOther(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Path)
		fmt.Fprint(w, "what only this machine may read")
	}))
	t.Cleanup(server.Close)
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		repo := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(repo, "app"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(repo, "app/a.yaml"), []byte(configMap), 0o600))
		require.NoError(t, os.Symlink("real.yaml", filepath.Join(repo, "app", name)))
		real := filepath.Join(repo, "app/real.yaml")

		require.NoError(t, os.WriteFile(real, []byte("configMapGenerator: [{name: x, files: ['k="+server.URL+"']}]"), 0o600))
		objects, problems := render(t, os.DirFS(repo), kustomize.Limits{})
		assert.Empty(t, objects, name)
		require.Len(t, problems, 1, name)
		assert.ErrorContains(t, problems[0], "is remote", name)
		assert.Equal(t, "app/"+name, problems[0].File)

		require.NoError(t, os.WriteFile(real, []byte("resources: [a.yaml]"), 0o600))
		objects, problems = render(t, os.DirFS(repo), kustomize.Limits{})
		assert.Empty(t, problems, name)
		require.Len(t, objects, 1, name)
		assert.Equal(t, "app/a.yaml", objects[0].File, "the top kustomization is known by that name, too")
	}
	assert.Empty(t, requests)
}

func TestRender_buildThatFailsIsOneProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		content map[string]string
		want    string
	}{
		"MissingFile":  {map[string]string{"app/kustomization.yaml": "resources: [nope.yaml]"}, "nope.yaml"},
		"UnknownField": {map[string]string{"app/kustomization.yaml": "resource: [a.yaml]"}, "unknown field"},
		"NotYAML":      {map[string]string{"app/kustomization.yaml": "a: b: c"}, "invalid Kustomization"},
		"Empty":        {map[string]string{"app/kustomization.yaml": ""}, "kustomization.yaml is empty"},
		"Two":          {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]", "app/Kustomization": "resources: [a.yaml]"}, "multiple kustomization files"},
		"Cycle":        {map[string]string{"app/kustomization.yaml": "resources: [../b]", "b/kustomization.yaml": "resources: [../app]"}, "cycle"},
		"Duplicate":    {map[string]string{"app/kustomization.yaml": "resources: [a.yaml, b.yaml]", "app/b.yaml": configMap}, "ConfigMap"},
		"BadManifest":  {map[string]string{"app/kustomization.yaml": "resources: [b.yaml]", "app/b.yaml": "kind: ConfigMap"}, "b.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := tc.content["app/a.yaml"]; !ok {
				tc.content["app/a.yaml"] = configMap
			}
			objects, problems := render(t, files(tc.content), kustomize.Limits{})
			assert.Empty(t, objects)
			require.Len(t, problems, 1)
			assert.Equal(t, manifest.ReasonBuildFailed, problems[0].Reason)
			assert.Equal(t, "app/", problems[0].File[:4])
			assert.ErrorContains(t, problems[0], tc.want)
			assert.NotContains(t, problems[0].Message, "\n")
		})
	}
}

func TestRender_limits(t *testing.T) {
	// Every level uses the one below twice.
	doubling := map[string]string{"l0/kustomization.yaml": "resources: [a.yaml]", "l0/a.yaml": configMap}
	for i := 1; i <= 30; i++ {
		doubling[fmt.Sprintf("l%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../x%d, ../y%d]", i, i)
		doubling[fmt.Sprintf("x%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../l%d]\nnamePrefix: p-", i-1)
		doubling[fmt.Sprintf("y%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../l%d]\nnamePrefix: q-", i-1)
	}
	doubling["app/kustomization.yaml"] = "resources: [../l30]"
	laughs := configMap + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	app := func(content string) map[string]string {
		return map[string]string{"app/kustomization.yaml": "resources: [a.yaml]", "app/a.yaml": content}
	}
	for name, tc := range map[string]struct {
		content map[string]string
		limits  kustomize.Limits
		want    string
	}{
		"Doubling":  {doubling, kustomize.Limits{Reads: 500}, "limit Reads is 500"},
		"Laughs":    {app(laughs), kustomize.Limits{}, "limit AliasNodes is 50000"},
		"LongText":  {app(configMap + "a: &x " + strings.Repeat("y", 100_000) + "\nb: [" + strings.Repeat("*x,", 10_000) + "]"), kustomize.Limits{}, "limit AliasBytes is 5242880"},
		"Recursion": {app(configMap + "a: &a [*a]\n"), kustomize.Limits{}, "limit AliasNodes is 50000"},
		"File":      {app(configMap), kustomize.Limits{FileBytes: 25}, "limit FileBytes is 25"},
		"Total":     {app(configMap), kustomize.Limits{TotalBytes: 60}, "limit TotalBytes is 60"},
		"Objects":   {app(configMap + "---\n" + strings.Replace(configMap, "a}", "b}", 1)), kustomize.Limits{Objects: 1}, "limit Objects is 1"},
		"Values":    {app(configMap + "data: {a: b, c: d}"), kustomize.Limits{Values: 7}, "limit Values is 7"},
		"Text":      {app(configMap + "data: {a: b, c: d}"), kustomize.Limits{ObjectBytes: 40}, "limit ObjectBytes is 40"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems := render(t, files(tc.content), tc.limits)
			assert.Empty(t, objects)
			require.Len(t, problems, 1)
			assert.Equal(t, manifest.ReasonLimitExceeded, problems[0].Reason)
			assert.ErrorContains(t, problems[0], tc.want)
		})
	}
}

// faultyFS fails to open one file.
type faultyFS struct {
	fstest.MapFS
	err error
}

func (f faultyFS) Open(name string) (fs.File, error) {
	if name == "app/a.yaml" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
	}
	return f.MapFS.Open(name)
}

func TestRender_errorsOfTheMachineAreErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	fsys := faultyFS{files(map[string]string{"app/kustomization.yaml": "resources: [a.yaml]", "app/a.yaml": configMap}), broken}

	_, _, err := kustomize.Render(t.Context(), fsys, "app", kustomize.Options{})
	require.ErrorIs(t, err, broken)

	_, _, err = kustomize.Render(t.Context(), fsys, "nope", kustomize.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.False(t, kustomize.IsKustomization(fsys, "nope"))
}

func TestRender_concurrently(t *testing.T) {
	fsys := files(map[string]string{
		"app/kustomization.yaml": "resources: [a.yaml]\nnamespace: x\npatches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 3}}'}]",
		"app/a.yaml":             "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				objects, problems, err := kustomize.Render(t.Context(), fsys, "app", kustomize.Options{})
				assert.NoError(t, err)
				assert.Empty(t, problems)
				if assert.Len(t, objects, 1) {
					assert.Equal(t, map[string]any{"replicas": int64(3)}, objects[0].Object["spec"])
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkRender(b *testing.B) {
	content := map[string]string{"app/kustomization.yaml": "namespace: x\nresources:\n"}
	for i := range 200 {
		name := fmt.Sprintf("c%d.yaml", i)
		content["app/kustomization.yaml"] += "  - " + name + "\n"
		content["app/"+name] = strings.Replace(configMap, "a}", fmt.Sprintf("c%d}", i), 1)
	}
	fsys := files(content)
	for b.Loop() {
		objects, _, err := kustomize.Render(b.Context(), fsys, "app", kustomize.Options{})
		if err != nil || len(objects) != 200 {
			b.Fatal(err, len(objects))
		}
	}
}
