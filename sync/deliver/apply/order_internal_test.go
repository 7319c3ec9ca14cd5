package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/manifest"
)

// K9: an installation is delivered after those of the same commit that it depends on, and nothing else is.
func TestStages_followDependencies(t *testing.T) {
	var items []*item
	add := func(kind, name string, dependsOn ...any) {
		version := "apps.waybill.dev/v1alpha1"
		if kind != "ApplicationInstallation" {
			version = "v1"
		}
		object := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}
		if len(dependsOn) > 0 {
			object["spec"] = map[string]any{"dependsOn": dependsOn}
		}
		it, err := newItem(manifest.Object{Unstructured: &unstructured.Unstructured{Object: object}}, Request{DefaultNamespace: "a"})
		require.NoError(t, err)
		items = append(items, it)
	}
	on := func(name string) any { return map[string]any{"name": name} }
	add("ApplicationInstallation", "last", on("middle"), on("first"))
	add("ApplicationInstallation", "middle", map[string]any{"name": "first", "namespace": "a"})
	add("ApplicationInstallation", "elsewhere", on("not-delivered"), map[string]any{"name": "first", "namespace": "b"})
	add("ConfigMap", "beside")
	add("ApplicationInstallation", "first")
	add("ApplicationInstallation", "odd", "no object")
	add("Namespace", "a")

	var got [][]string
	for _, stage := range stages(items) {
		var names []string
		for _, it := range stage {
			names = append(names, it.id.Name)
		}
		got = append(got, names)
	}
	assert.Equal(t, [][]string{{"a"}, {"elsewhere", "beside", "first", "odd"}, {"middle"}, {"last"}}, got)

	items = nil
	add("ApplicationInstallation", "one", on("two"))
	add("ApplicationInstallation", "two", on("one"))
	all := 0
	for _, stage := range stages(items) {
		all += len(stage)
	}
	assert.Equal(t, 2, all, "a circle is delivered, in any order")
}
