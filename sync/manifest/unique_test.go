package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/manifest"
)

func configMap(apiVersion, namespace, name, file string, line int) manifest.Object {
	return manifest.Object{File: file, Line: line, Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion,
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
	}}}
}

// C59
func TestUnique_keepsNoneOfADuplicate(t *testing.T) {
	only := configMap("v1", "a", "only", "a.yaml", 1)
	objects := []manifest.Object{
		configMap("v1", "a", "twice", "a.yaml", 5),
		only,
		configMap("v2", "a", "twice", "b.yaml", 1),
		configMap("v1", "a", "twice", "c.yaml", 0),
		configMap("v1", "b", "twice", "d.yaml", 1),
	}

	kept, problems := manifest.Unique(objects)

	assert.Equal(t, []manifest.Object{only, objects[4]}, kept)
	if assert.Len(t, problems, 1) {
		assert.Equal(t, manifest.ReasonDuplicateObject, problems[0].Reason)
		assert.EqualError(t, problems[0],
			"a.yaml:5: ConfigMap a/twice: the same object is in b.yaml:1, c.yaml too, so none of them is used; keep one")
	}
}

func TestUnique_keepsAllOfDifferentObjects(t *testing.T) {
	objects := []manifest.Object{configMap("v1", "a", "x", "a.yaml", 1), configMap("v1", "b", "x", "a.yaml", 5)}
	kept, problems := manifest.Unique(objects)
	assert.Equal(t, objects, kept)
	assert.Empty(t, problems)
}

// What two kustomizations build of one file is distinguished by the kustomizations.
func TestUnique_namesTheKustomizations(t *testing.T) {
	first, second := configMap("v1", "a", "twice", "base/cm.yaml", 0), configMap("v1", "a", "twice", "base/cm.yaml", 0)
	first.Kustomization, second.Kustomization = "overlays/a", "overlays/b"
	_, problems := manifest.Unique([]manifest.Object{first, second})
	if assert.Len(t, problems, 1) {
		assert.EqualError(t, problems[0], "base/cm.yaml: ConfigMap a/twice: the same object is built by each of the kustomizations overlays/a, overlays/b, "+
			"so none of them is used; keep one")
	}
}
