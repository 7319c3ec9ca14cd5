package plain_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/plain"
)

func configMap(name string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n")}
}

func names(objects []manifest.Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.GetName())
	}
	return out
}

func TestRender_ignores(t *testing.T) {
	fsys := fstest.MapFS{
		"a.yaml":                   configMap("a"),
		"b.yaml":                   configMap("b"),
		"sub/b.yaml":               configMap("sub-b"),
		"sub/c.yml":                configMap("sub-c"),
		"sub/deep/d.yaml":          configMap("sub-deep-d"),
		"sub/.waybillignore":       {Data: []byte("/c.yml\n")},
		".git/config.yaml":         configMap("git"),
		".github/workflows/x.yaml": configMap("ci"),
		".sops.yaml":               configMap("sops"),
		"c.YAML":                   configMap("not-by-this-name"),
		"readme.txt":               {Data: []byte("a: b: c")},
	}
	for name, tc := range map[string]struct {
		reason string
		ignore string
		want   []string
	}{
		"Default":   {"version control, CI, and the file in sub", "", []string{"a", "b", "sub-b", "sub-deep-d"}},
		"Name":      {"a name anywhere", "b.yaml", []string{"a", "sub-deep-d"}},
		"Rooted":    {"a path from the root", "/b.yaml\n# a comment\n\n", []string{"a", "sub-b", "sub-deep-d"}},
		"Directory": {"a directory with all that it holds", "deep/", []string{"a", "b", "sub-b"}},
		"Glob":      {"a pattern over directories", "sub/**/*.yaml", []string{"a", "b"}},
		"Negation":  {"the option wins over files", "!c.yml\n!.sops.yaml", []string{"sops", "a", "b", "sub-b", "sub-c", "sub-deep-d"}},
		"AllowOnly": {"all but one", "/*\n!/a.yaml", []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems, err := plain.Render(t.Context(), fsys, plain.Options{Ignore: tc.ignore})
			require.NoError(t, err)
			assert.Empty(t, problems)
			assert.Equal(t, tc.want, names(objects), tc.reason)
		})
	}
}

func TestRender_nestedKustomization(t *testing.T) {
	fsys := fstest.MapFS{
		"a.yaml":                    configMap("a"),
		"web/kustomization.yaml":    {Data: []byte("resources: [b.yaml]")},
		"web/b.yaml":                configMap("must not be read"),
		"web/patches/c.yaml":        configMap("nor this"),
		"ignored/Kustomization":     {Data: []byte("")},
		"z/deep/kustomization.yml":  {Data: []byte("")},
		"z/kustomization.yaml/file": {Data: []byte("")},
	}
	var built []string
	objects, problems, err := plain.Render(t.Context(), fsys, plain.Options{Ignore: "ignored", Kustomization: func(dir string) ([]manifest.Object, []manifest.Problem, error) {
		built = append(built, dir)
		return nil, []manifest.Problem{{File: dir, Message: "built"}}, nil
	}})
	require.NoError(t, err)
	assert.Equal(t, []string{"web", "z/deep"}, built)
	assert.Equal(t, []string{"a"}, names(objects))
	assert.Len(t, problems, 2)

	_, _, err = plain.Render(t.Context(), fsys, plain.Options{Kustomization: func(string) ([]manifest.Object, []manifest.Problem, error) {
		return nil, nil, errors.New("mirror is gone")
	}})
	assert.ErrorContains(t, err, "mirror is gone")
}

// Each line of an ignore file is held against each file. What cannot be read may have said what not
// to render, so nothing is.
func TestRender_limitsIgnoreFiles(t *testing.T) {
	fsys := fstest.MapFS{
		"a.yaml": configMap("a"), "b/c.yaml": configMap("c"), "b/d/e.yaml": configMap("e"),
		".waybillignore": {Data: []byte("nothing\n")}, "b/.waybillignore": {Data: []byte(strings.Repeat("x\n", 40_000))},
	}
	objects, problems, err := plain.Render(t.Context(), fsys, plain.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, names(objects))
	require.Len(t, problems, 1)
	assert.Equal(t, manifest.ReasonLimitExceeded, problems[0].Reason)
	assert.Equal(t, "b/.waybillignore", problems[0].File)
	assert.ErrorContains(t, problems[0], "limit IgnoreBytes is 65536")
}

func TestRender_endsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := plain.Render(ctx, fstest.MapFS{"a.yaml": configMap("a")}, plain.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// faultyFS fails to open one file.
type faultyFS struct {
	fstest.MapFS
	err error
}

func (f faultyFS) Open(name string) (fs.File, error) {
	if name == "b.yaml" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
	}
	return f.MapFS.Open(name)
}

// What the repository is to blame for is a Problem and comes again; what the
// machine is to blame for must not look like an empty file.
func TestRender_errorsOfTheFileSystem(t *testing.T) {
	files := fstest.MapFS{"a.yaml": configMap("a"), "b.yaml": configMap("b"), "c.yaml": configMap("c")}
	for _, content := range []error{fs.ErrNotExist, fs.ErrPermission, fmt.Errorf("limit: %w", fs.ErrInvalid)} {
		objects, problems, err := plain.Render(t.Context(), faultyFS{files, content}, plain.Options{})
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "c"}, names(objects))
		require.Len(t, problems, 1)
		assert.Equal(t, manifest.ReasonUnreadableFile, problems[0].Reason)
		assert.True(t, strings.HasPrefix(problems[0].Error(), "b.yaml: cannot be read: "), problems[0].Error())
	}

	broken := errors.New("disk on fire")
	_, _, err := plain.Render(t.Context(), faultyFS{files, broken}, plain.Options{})
	require.ErrorIs(t, err, broken)
	_, _, err = plain.Render(t.Context(), fstest.MapFS{}, plain.Options{})
	require.NoError(t, err, "an empty directory is fine here")
}

func BenchmarkRender(b *testing.B) {
	fsys := make(fstest.MapFS)
	for i := range 1000 {
		var file strings.Builder
		fmt.Fprintf(&file, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c%04d\n  namespace: bench\n  labels:\n    app: bench\ndata:\n", i)
		for line := 0; file.Len() < 2048; line++ {
			fmt.Fprintf(&file, "  key-%d: \"value %d of file %d\"\n", line, line, i)
		}
		fsys[fmt.Sprintf("dir%02d/file%04d.yaml", i%20, i)] = &fstest.MapFile{Data: []byte(file.String())}
	}
	for b.Loop() {
		objects, problems, err := plain.Render(b.Context(), fsys, plain.Options{})
		if err != nil || len(objects) != 1000 || len(problems) > 0 {
			b.Fatal(err, len(objects), problems)
		}
	}
}
