package isolated_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/isolated"
	"waybill.dev/waybill/sync/render/kustomize"
)

func TestMain(m *testing.M) {
	isolated.Main()
	os.Exit(m.Run())
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: value, other: value}\n"

// folder is a repository with a kustomization of a ConfigMap, and other files.
func folder(kustomization string, others ...string) fstest.MapFS {
	fsys := fstest.MapFS{
		"app/kustomization.yaml": {Data: []byte("resources: [a.yaml]\n" + kustomization)},
		"app/a.yaml":             {Data: []byte(configMap)},
	}
	for i := 0; i < len(others); i += 2 {
		fsys[others[i]] = &fstest.MapFile{Data: []byte(others[i+1])}
	}
	return fsys
}

// A build in a process of its own makes what one in this process does. C25
func TestBuilder_buildsAsInThisProcess(t *testing.T) {
	const testdata = "../kustomize/testdata"
	cases, err := os.ReadDir(testdata)
	require.NoError(t, err)
	builder := isolated.NewBuilder(isolated.Options{})
	built := 0
	for _, c := range cases {
		if !c.IsDir() {
			continue
		}
		root := os.DirFS(filepath.Join(testdata, c.Name()))
		wanted, wantedProblems, err := kustomize.Render(t.Context(), root, "clusters/prod", kustomize.Options{})
		require.NoError(t, err)
		objects, problems, err := builder.Build(t.Context(), root, "clusters/prod")
		require.NoError(t, err)
		assert.Equal(t, wanted, objects, c.Name())
		assert.Equal(t, wantedProblems, problems, c.Name())
		built++
	}
	assert.Positive(t, built)
}

// What no process can hold in memory, or wait for, ends the process that builds it, and nothing else.
func TestBuilder_endsWhatGrowsWithoutEnd(t *testing.T) {
	copies := "patches:\n- target: {kind: ConfigMap}\n  patch: |-\n"
	for i := range 40 {
		copies += fmt.Sprintf("    - {op: copy, from: /data, path: /data/more%d}\n", i)
	}
	joined := "replacements:\n"
	for range 40 {
		joined += "- {source: {kind: ConfigMap, name: a, fieldPath: data.key}, targets: [{select: {kind: ConfigMap, name: a}, " +
			"fieldPaths: [data.key], options: {delimiter: /, index: 99}}]}\n"
	}
	const object = `"kind": {}, "apiVersion": {}, "metadata": {}`
	cases := map[string]struct {
		reason string
		fsys   fstest.MapFS
		want   string
		says   string
	}{
		"copies":       {"each doubles what was there", folder(copies), manifest.ReasonLimitExceeded, "more memory than it may (96Mi)"},
		"replacements": {"each joins a field to itself", folder(joined), manifest.ReasonLimitExceeded, "more memory than it may (96Mi)"},
		"circle": {
			"kustomize follows it until the stack is full", folder("crds: [crds.json]", "app/crds.json", `{"a.X": {"Schema": {"properties": {`+object+`, "self": {"$ref": "a.X"}}}}}`),
			manifest.ReasonBuildFailed, "crds that refer to each other",
		},
	}
	builder := isolated.NewBuilder(isolated.Options{Memory: 96 << 20, Processes: 1})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, problems, err := builder.Build(t.Context(), c.fsys, "app")
			require.NoError(t, err, c.reason)
			assert.Empty(t, objects, c.reason)
			require.Len(t, problems, 1, c.reason)
			assert.Equal(t, c.want, problems[0].Reason, c.reason)
			assert.Contains(t, problems[0].Message, c.says, c.reason)
			assert.Equal(t, "app/kustomization.yaml", problems[0].File)

			objects, problems, err = builder.Build(t.Context(), folder(""), "app")
			require.NoError(t, err, "the next build has a process of its own")
			assert.Empty(t, problems)
			assert.Len(t, objects, 1)
		})
	}
}

// What one build took, and what it made, does not count for the next one in the same process.
func TestBuilder_aLargeBuildIsFollowedByOthers(t *testing.T) {
	builder := isolated.NewBuilder(isolated.Options{Memory: 128 << 20, Processes: 1})
	large := folder("configMapGenerator: [{name: b, files: [text]}, {name: c, files: [text]}]", "app/text", strings.Repeat("<", 1<<20))
	for range 3 {
		objects, problems, err := builder.Build(t.Context(), large, "app")
		require.NoError(t, err)
		assert.Empty(t, problems)
		require.Len(t, objects, 3)
		assert.Equal(t, strings.Repeat("<", 1<<20), objects[1].Object["data"].(map[string]any)["text"])

		objects, problems, err = builder.Build(t.Context(), folder(""), "app")
		require.NoError(t, err)
		assert.Empty(t, problems)
		assert.Len(t, objects, 1)
	}
}

// told calls a function when a file is opened.
type told struct {
	fstest.MapFS
	name string
	call func()
}

func (f told) Open(name string) (fs.File, error) {
	if name == f.name {
		f.call()
	}
	return f.MapFS.Open(name)
}

// endless is a kustomization that takes hours, once its last file is read.
func endless() fstest.MapFS {
	many := ""
	for i := range 300 {
		many += strings.Replace(configMap, "{name: a}", fmt.Sprintf("{name: a%d}", i), 1) + "---\n"
	}
	return folder("patches:\n"+strings.Repeat("- {path: patch.yaml, target: {kind: ConfigMap}}\n", 3000), "app/a.yaml", many,
		"app/patch.yaml", "- {op: add, path: /data/key, value: other}\n")
}

// Who gives up a build gets their answer at once, and others its place.
func TestBuilder_endsABuildThatIsGivenUp(t *testing.T) {
	builder := isolated.NewBuilder(isolated.Options{Processes: 1})
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := builder.Build(ctx, told{endless(), "app/patch.yaml", cancel}, "app")
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "given up")

	objects, _, err := builder.Build(t.Context(), folder(""), "app")
	require.NoError(t, err)
	assert.Len(t, objects, 1)

	_, _, err = builder.Build(ctx, folder(""), "app")
	require.ErrorIs(t, err, context.Canceled)
}

// Errors are what they were: those of the machine are tried again, those of the content are not.
func TestBuilder_errorsAreThoseOfTheRepository(t *testing.T) {
	builder, broken := isolated.NewBuilder(isolated.Options{}), errors.New("disk on fire")
	_, _, err := builder.Build(t.Context(), faulty{folder(""), broken}, "app")
	require.ErrorIs(t, err, broken)

	_, _, err = builder.Build(t.Context(), folder(""), "nope")
	require.ErrorIs(t, err, fs.ErrNotExist)

	for _, refused := range []error{fs.ErrNotExist, fs.ErrInvalid, fs.ErrPermission} {
		objects, problems, err := builder.Build(t.Context(), faulty{folder(""), refused}, "app")
		require.NoError(t, err)
		assert.Empty(t, objects)
		require.Len(t, problems, 1)
		assert.Contains(t, problems[0].Message, refused.Error())
	}
	objects, _, err := builder.Build(t.Context(), folder(""), "app")
	require.NoError(t, err)
	assert.Len(t, objects, 1)
}

// faulty fails to open one file.
type faulty struct {
	fstest.MapFS
	err error
}

func (f faulty) Open(name string) (fs.File, error) {
	if name == "app/a.yaml" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
	}
	return f.MapFS.Open(name)
}

// Links are followed within the repository.
func TestBuilder_followsLinks(t *testing.T) {
	repo := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(repo, "base"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(repo, "base/kustomization.yaml"), []byte("resources: [a.yaml]"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(repo, "base/real.yaml"), []byte(configMap), 0o600))
	require.NoError(t, os.Symlink("real.yaml", filepath.Join(repo, "base/a.yaml")))
	require.NoError(t, os.Symlink("base", filepath.Join(repo, "app")))
	objects, problems, err := isolated.NewBuilder(isolated.Options{}).Build(t.Context(), os.DirFS(repo), "app")
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.Len(t, objects, 1)

	require.NoError(t, os.Remove(filepath.Join(repo, "base/a.yaml")))
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(repo, "base/a.yaml")))
	objects, problems, err = isolated.NewBuilder(isolated.Options{}).Build(t.Context(), os.DirFS(repo), "app")
	require.NoError(t, err)
	assert.Empty(t, objects)
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0].Message, "symbolic link is absolute")
}
