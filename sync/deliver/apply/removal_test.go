package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// That a version is not served any more, which a definition may say in the same commit, does not mean
// that the object is gone: it is deleted in a version that is served (C41).
func TestPrune_versionIsNotServedAnyMore(t *testing.T) {
	cases := map[string]struct{ reason, when, finalizer string }{
		"BeforeItIsDeleted":  {"the answer to the deletion is about the path", "DELETE", ""},
		"BeforeItIsSeenGone": {"the answer to the look-up is about the path", answered + "DELETE", "example.com/hold"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			crd, custom := definition(t, f)
			if tc.finalizer != "" {
				custom.SetFinalizers([]string{tc.finalizer})
			}
			_, err := f.admin.dynamic.Resource(definitions).Create(t.Context(), crd.Unstructured, metav1.CreateOptions{})
			require.NoError(t, err)
			kind := schema.GroupKind{Group: f.namespace + ".example.com", Kind: "Thing"}
			require.Eventually(t, func() bool {
				_, err := f.target.mapper.RESTMapping(kind, "v1")
				return err == nil
			}, patience, often, "discovery learns it late, and has to forget it")
			inventory := f.until(f.request(nil, custom), clean).Inventory
			things := f.things("v1")
			f.requests.interfere(tc.when, func() {
				f.serve(crd, false)
				require.Eventually(t, func() bool {
					_, err := things.Get(t.Context(), custom.GetName(), metav1.GetOptions{})
					return watch.IsKindNotFound(err)
				}, patience, often)
			})

			result := f.apply(inventory)
			require.NoError(t, result.Err, tc.reason)
			require.Len(t, result.Problems, 1, tc.reason)
			assert.True(t, result.Problems[0].Removal)
			assert.Equal(t, inventory, result.Inventory, "it is still there, with our mark")
			live, err := f.things("v2").Get(t.Context(), custom.GetName(), metav1.GetOptions{})
			require.NoError(t, err)
			live.SetFinalizers(nil)
			_, err = f.things("v2").Update(t.Context(), live, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				result = f.apply(inventory)
				return clean(result)
			}, patience, often, "discovery learns it late")
			assert.Empty(t, result.Inventory)
			_, err = f.things("v2").Get(t.Context(), custom.GetName(), metav1.GetOptions{})
			assert.True(t, apierrors.IsNotFound(err), "%v", err)
		})
	}
}

// A definition that the API server does not accept serves nothing, so there is nothing of its kind that
// would have to go before it does.
func TestPrune_definitionIsNotAccepted(t *testing.T) {
	f := newFixture(t)
	first, _ := definition(t, f)
	f.until(f.request(nil, first), clean)
	second := manifest.Object{Unstructured: first.DeepCopy()}
	group := f.namespace + ".example.com"
	second.SetName("others." + group)
	names := map[string]any{"kind": "Other", "plural": "others", "singular": "things"} // a name of the first
	require.NoError(t, unstructured.SetNestedMap(second.Object, names, "spec", "names"))
	t.Cleanup(func() {
		_ = f.admin.dynamic.Resource(definitions).Delete(cleanup(t), second.GetName(), metav1.DeleteOptions{})
	})
	custom := parse(t, "{apiVersion: "+group+"/v1, kind: Other, metadata: {name: other}}")
	result := f.until(f.request(nil, first, second, custom), func(r apply.Result) bool { return len(r.Problems) == 1 })
	require.Contains(t, result.Problems[0].Message, "is not accepted")
	stale := append(result.Inventory, manifest.ID{Group: group, Version: "v1", Kind: "Other", Namespace: f.namespace, Name: "other"})

	require.Eventually(t, func() bool {
		left := f.Delete(t.Context(), f.owner, stale)
		require.NoError(t, left.Err)
		require.Empty(t, left.Problems)
		return len(left.Inventory) == 0
	}, patience, often)
	_, err := f.admin.dynamic.Resource(definitions).Get(t.Context(), second.GetName(), metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

// things returns a client for the kind of definition.
func (f *fixture) things(version string) dynamic.ResourceInterface {
	return f.admin.dynamic.Resource(schema.GroupVersionResource{Group: f.namespace + ".example.com", Version: version, Resource: "things"}).Namespace(f.namespace)
}

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
	get := "GET /api/v1/namespaces/" + space.GetName()
	assert.Equal(t, []string{"DELETE /api/v1/namespaces/" + space.GetName(), get, get}, f.requests.take(), "is it going, and what does it wait for")
	_, err := f.admin.dynamic.Resource(resource("namespaces")).Patch(t.Context(), space.GetName(), mergePatch,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}
