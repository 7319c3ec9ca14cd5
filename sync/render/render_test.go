package render_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render"
)

// P6, C25
func TestFolder_rendersWhatAFolderHolds(t *testing.T) {
	cm := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n")}
	kustomization := &fstest.MapFile{Data: []byte("resources: [cm.yaml]\nnamePrefix: built-\n")}
	cases := map[string]struct {
		reason string
		files  fstest.MapFS
		folder string
		name   string
		file   string
	}{
		"root":              {"an empty path is the root", fstest.MapFS{"cm.yaml": cm}, "", "cm", "cm.yaml"},
		"folder":            {"files are named from the root of the repository", fstest.MapFS{"a/cm.yaml": cm}, "a", "cm", "a/cm.yaml"},
		"spelled otherwise": {"./a/ is a", fstest.MapFS{"a/cm.yaml": cm}, "./a/", "cm", "a/cm.yaml"},
		"kustomization":     {"a kustomization is built", fstest.MapFS{"a/cm.yaml": cm, "a/kustomization.yaml": kustomization}, "a", "built-cm", "a/cm.yaml"},
		"kustomization below": {
			"so is one further down", fstest.MapFS{"a/b/cm.yaml": cm, "a/b/kustomization.yaml": kustomization}, "a", "built-cm", "a/b/cm.yaml",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, problems, err := render.Folder(t.Context(), c.files, c.folder, "")
			require.NoError(t, err, c.reason)
			require.Empty(t, problems, c.reason)
			require.Len(t, objects, 1, c.reason)
			assert.Equal(t, c.name, objects[0].GetName(), c.reason)
			assert.Equal(t, c.file, objects[0].File, c.reason)
		})
	}
}

func TestFolder_saysWhatIsWrongWithAFolder(t *testing.T) {
	files := fstest.MapFS{
		"a/cm.yaml":                 {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n")},
		"broken/kustomization.yaml": {Data: []byte("resources: [nowhere.yaml]\n")},
	}
	cases := map[string]struct {
		reason string
		folder string
		want   string
	}{
		"absent":  {"a folder that is not there", "b", v1alpha1.PathNotFoundReason},
		"file":    {"a file is no folder", "a/cm.yaml", v1alpha1.PathNotFoundReason},
		"outside": {"a path out of the repository", "../etc", v1alpha1.PathNotFoundReason},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := render.Folder(t.Context(), files, c.folder, "")
			var known *render.Error
			require.True(t, errors.As(err, &known), "%s: %v", c.reason, err)
			assert.Equal(t, c.want, known.Reason, c.reason)
		})
	}
	_, problems, err := render.Folder(t.Context(), files, "broken", "")
	assert.True(t, err != nil || len(problems) == 1, "a kustomization that does not build is told of, and renders to nothing")
}
