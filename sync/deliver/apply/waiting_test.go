package apply_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definition returns a CustomResourceDefinition of a group of its own, and an
// object of its kind.
func definition(t testing.TB, f *fixture) (crd, custom manifest.Object) {
	t.Helper()
	group := f.namespace + ".example.com"
	crd = parse(t, strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 9}}}}}}
`, "GROUP", group))
	t.Cleanup(func() {
		_ = f.admin.dynamic.Resource(definitions).Delete(cleanup(t), crd.GetName(), metav1.DeleteOptions{})
	})
	return crd, parse(t, "{apiVersion: "+group+"/v1, kind: Thing, metadata: {name: thing}, spec: {size: 1}}")
}

func (f *fixture) thing() *unstructured.Unstructured {
	f.t.Helper()
	resource := schema.GroupVersionResource{Group: f.namespace + ".example.com", Version: "v1", Resource: "things"}
	object, err := f.admin.dynamic.Resource(resource).Namespace(f.namespace).Get(f.t.Context(), "thing", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return object
}

func TestWaiting_kindAndObjectInOneRequest(t *testing.T) {
	f := newFixture(t)
	crd, custom := definition(t, f)
	request := f.request(nil, custom, crd, configMap(t, "settings", "one"))
	first := f.Apply(t.Context(), request)
	require.NoError(t, first.Err)
	assert.Empty(t, first.Problems, "that a new kind is not served yet is no problem")
	assert.NotNil(t, f.live("configmaps", "settings"))

	last := f.until(request, clean)
	assert.Len(t, last.Inventory, 3)
	require.NotNil(t, f.thing())

	f.requests.take()
	f.mustApply(last.Inventory, request.Objects...)
	assert.Empty(t, f.requests.take())
	f.editThing()
	repaired := f.until(request, func(r apply.Result) bool { return len(r.Changes) > 0 })
	assert.Equal(t, apply.Corrected, repaired.Changes[0].Action)

	left := f.Delete(t.Context(), f.owner, last.Inventory)
	for len(left.Inventory) > 0 {
		require.NoError(t, left.Err)
		require.Empty(t, left.Problems)
		f.awaitNotice()
		left = f.Delete(t.Context(), f.owner, left.Inventory)
	}
}

// editThing edits the custom object.
func (f *fixture) editThing() {
	f.t.Helper()
	object := f.thing()
	require.NoError(f.t, unstructured.SetNestedField(object.Object, int64(2), "spec", "size"))
	resource := schema.GroupVersionResource{Group: f.namespace + ".example.com", Version: "v1", Resource: "things"}
	_, err := f.admin.dynamic.Resource(resource).Namespace(f.namespace).Update(f.t.Context(), object, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
	require.NoError(f.t, err)
}

// The definition comes from another user, later.
func TestWaiting_kindOfSomebodyElse(t *testing.T) {
	f := newFixture(t)
	crd, custom := definition(t, f)
	request := f.request(nil, custom)
	first := f.Apply(t.Context(), request)
	require.NoError(t, first.Err)
	require.Len(t, first.Problems, 1)
	assert.Equal(t, apply.ReasonKindNotFound, first.Problems[0].Reason)
	assert.True(t, first.Unannounced, "an aggregated API server may be what is missing")
	assert.Equal(t, "the API server has no kind Thing in "+f.namespace+".example.com/v1: install what defines it", first.Problems[0].Message)
	assert.Len(t, first.Waiting, 1)

	_, err := f.admin.dynamic.Resource(definitions).Create(t.Context(), crd.Unstructured, metav1.CreateOptions{})
	require.NoError(t, err)
	f.until(request, clean)
	require.NotNil(t, f.thing())
}

// A definition that is deleted by hand comes back, with its objects.
func TestWaiting_definitionDeleted(t *testing.T) {
	f := newFixture(t)
	crd, custom := definition(t, f)
	request := f.request(nil, crd, custom)
	f.until(request, clean)
	uid := f.thing().GetUID()
	require.NoError(t, f.admin.dynamic.Resource(definitions).Delete(t.Context(), crd.GetName(), metav1.DeleteOptions{}))
	f.awaitNotice()
	f.until(request, func(r apply.Result) bool {
		thing := f.thing()
		return clean(r) && thing != nil && thing.GetUID() != uid
	})
}

func TestWaiting_namespace(t *testing.T) {
	f := newFixture(t)
	space := f.namespace + "-later"
	object := configMap(t, "settings", "one")
	object.SetNamespace(space)
	request := f.request(nil, object, configMap(t, "other", "one"))
	first := f.Apply(t.Context(), request)
	require.NoError(t, first.Err)
	require.Len(t, first.Problems, 1)
	assert.Equal(t, apply.ReasonNamespaceNotFound, first.Problems[0].Reason)
	assert.Equal(t, `namespaces "`+space+`" not found; it is applied as soon as there is one`, first.Problems[0].Message)
	assert.Len(t, first.Waiting, 1)
	assert.NotNil(t, f.live("configmaps", "other"))

	f.makeNamespace(space)
	f.awaitNotice()
	f.mustApply(first.Inventory, request.Objects...)
}

func (f *fixture) makeNamespace(name string) {
	f.t.Helper()
	space := parse(f.t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	_, err := f.admin.dynamic.Resource(resource("namespaces")).Create(f.t.Context(), space.Unstructured, metav1.CreateOptions{})
	require.NoError(f.t, err)
	f.t.Cleanup(func() {
		_ = f.admin.dynamic.Resource(resource("namespaces")).Delete(cleanup(f.t), name, metav1.DeleteOptions{})
	})
}

func TestWaiting_namespaceIsBeingDeleted(t *testing.T) {
	f := newFixture(t)
	space := f.namespace + "-held"
	f.makeNamespace(space)
	held := configMap(t, "held", "one")
	held.SetNamespace(space)
	held.SetFinalizers([]string{"example.com/hold"})
	maps := f.admin.dynamic.Resource(resource("configmaps")).Namespace(space)
	_, err := maps.Create(t.Context(), held.Unstructured, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, f.admin.dynamic.Resource(resource("namespaces")).Delete(t.Context(), space, metav1.DeleteOptions{}))

	object := configMap(t, "settings", "one")
	object.SetNamespace(space)
	request := f.request(nil, object)
	result := f.Apply(t.Context(), request)
	require.Len(t, result.Problems, 1)
	assert.Equal(t, apply.ReasonTerminating, result.Problems[0].Reason)
	assert.Contains(t, result.Problems[0].Message, "because it is being terminated")

	_, err = maps.Patch(t.Context(), "held", mergePatch, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	f.until(request, func(r apply.Result) bool {
		return len(r.Problems) == 1 && r.Problems[0].Reason == apply.ReasonNamespaceNotFound
	})
	f.makeNamespace(space)
	f.until(request, clean)
}

// A Namespace of ours that is being deleted comes back, with what is in it.
func TestWaiting_ownNamespaceDeleted(t *testing.T) {
	f := newFixture(t)
	space := f.namespace + "-own"
	object := configMap(t, "settings", "one")
	object.SetNamespace(space)
	request := f.request(nil, parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+space+"}}"), object)
	f.until(request, clean)
	t.Cleanup(func() {
		_ = f.admin.dynamic.Resource(resource("namespaces")).Delete(cleanup(t), space, metav1.DeleteOptions{})
	})
	require.NoError(t, f.admin.dynamic.Resource(resource("namespaces")).Delete(t.Context(), space, metav1.DeleteOptions{}))
	f.awaitNotice()
	f.until(request, func(r apply.Result) bool {
		_, err := f.admin.dynamic.Resource(resource("configmaps")).Namespace(space).Get(t.Context(), "settings", metav1.GetOptions{})
		return clean(r) && err == nil
	})
}

func TestWaiting_objectIsBeingDeleted(t *testing.T) {
	f := newFixture(t)
	held := configMap(t, "held", "one")
	held.SetFinalizers([]string{"example.com/hold"})
	first := f.mustApply(nil, held)
	f.delete("configmaps", "held")
	f.awaitNotice()
	result := f.apply(first.Inventory, held)
	require.Len(t, result.Problems, 1)
	assert.Equal(t, apply.ReasonTerminating, result.Problems[0].Reason)
	assert.Len(t, result.Waiting, 1)

	f.edit("configmaps", "held", `{"metadata":{"finalizers":null}}`)
	f.awaitNotice()
	assert.Equal(t, apply.Created, f.mustApply(first.Inventory, held).Changes[0].Action)
	f.edit("configmaps", "held", `{"metadata":{"finalizers":null}}`)
}
