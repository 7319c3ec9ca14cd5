package apply_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// K9: what others of the same commit depend on is written first, so that the controller of installations sees
// it first, and so is each change of it.
func TestApply_writesInTheOrderOfDependencies(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, f.cluster.InstallCRDs(t.Context(), "../../../charts/waybill/crds/apps.waybill.dev_applicationinstallations.yaml"))
	const many = 8
	name := func(n int) string { return fmt.Sprintf("n%d", n) }
	commit := func(version string) []manifest.Object {
		var objects []manifest.Object
		for n := range many {
			spec := map[string]any{"applicationRef": map[string]any{"name": "web", "version": version}}
			if n > 0 {
				spec["dependsOn"] = []any{map[string]any{"name": name(n - 1)}}
			}
			objects = append(objects, manifest.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationInstallationKind,
				"metadata": map[string]any{"name": name(n), "namespace": f.namespace}, "spec": spec,
			}}})
		}
		slices.Reverse(objects)
		return objects
	}
	written := func() []int {
		var versions []int
		for n := range many {
			found, err := f.admin.dynamic.Resource(v1alpha1.GroupVersion.WithResource("applicationinstallations")).Namespace(f.namespace).
				Get(t.Context(), name(n), metav1.GetOptions{})
			require.NoError(t, err)
			version, err := strconv.Atoi(found.GetResourceVersion())
			require.NoError(t, err)
			versions = append(versions, version)
		}
		return versions
	}
	first := f.mustApply(nil, commit("1.0.0")...)
	assert.True(t, slices.IsSorted(written()), "%v", written())
	f.mustApply(first.Inventory, commit("1.1.0")...)
	assert.True(t, slices.IsSorted(written()), "%v", written())
}
