package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/manifest"
)

// One object under two names is one removal: what is cluster-scoped has no namespace, whatever
// its manifest says.
func TestPrune_oneObjectUnderTwoNames(t *testing.T) {
	f := newFixture(t)
	space := parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+f.namespace+"-own, finalizers: [example.com/hold]}}")
	first := f.mustApply(nil, space)
	f.requests.take()
	guess := first.Inventory[0]
	guess.Namespace = "default"
	left := f.Delete(t.Context(), f.owner, []manifest.ID{guess, first.Inventory[0]})
	assert.Equal(t, first.Inventory, left.Inventory)
	assert.Equal(t, []string{"DELETE /api/v1/namespaces/" + space.GetName(), "GET /api/v1/namespaces/" + space.GetName()}, f.requests.take())
	_, err := f.admin.dynamic.Resource(resource("namespaces")).Patch(t.Context(), space.GetName(), mergePatch,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}
