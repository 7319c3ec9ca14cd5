package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// withThing delivers a definition, an object of its kind, and a ConfigMap.
func (f *fixture) withThing(edit func(manifest.Object)) apply.Result {
	f.t.Helper()
	crd, custom := definition(f.t, f)
	edit(custom)
	return f.until(f.request(nil, crd, custom, configMap(f.t, "settings", "one")), clean)
}

func (f *fixture) definition() bool {
	f.t.Helper()
	object, err := f.admin.dynamic.Resource(definitions).Get(f.t.Context(), "things."+f.namespace+".example.com", metav1.GetOptions{})
	return err == nil && object.GetDeletionTimestamp() == nil
}

// letGo takes away the finalizers of the custom object.
func (f *fixture) letGo() {
	f.t.Helper()
	resource := schema.GroupVersionResource{Group: f.namespace + ".example.com", Version: "v1", Resource: "things"}
	_, err := f.admin.dynamic.Resource(resource).Namespace(f.namespace).Patch(f.t.Context(), "thing", mergePatch,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(f.t, err)
}

// P6: custom objects go first, and everything else once they are gone.
func TestCustom_goFirst(t *testing.T) {
	f := newFixture(t)
	first := f.withThing(func(custom manifest.Object) { custom.SetFinalizers([]string{"example.com/hold"}) })
	left := f.Delete(t.Context(), f.owner, first.Inventory)
	require.NoError(t, left.Err)
	assert.Empty(t, left.Problems)
	assert.ElementsMatch(t, first.Inventory, left.Inventory)
	assert.ElementsMatch(t, first.Inventory, left.Waiting)
	assert.True(t, f.definition())
	assert.NotNil(t, f.live("configmaps", "settings"))

	f.drain()
	f.letGo()
	f.awaitNotice()
	f.Delete(t.Context(), f.owner, left.Inventory)
	assert.False(t, f.definition())
	assert.Nil(t, f.live("configmaps", "settings"))
}

// P6: where a custom object may not be deleted, its definition stays: the API server would take
// the object along all the same.
func TestCustom_refused(t *testing.T) {
	cluster := shared(t)
	config, err := cluster.AddUser("no-deleter")
	require.NoError(t, err)
	f := newFixtureAs(t, cluster, config)
	group := f.namespace + ".example.com"
	may := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	everything := []rbacv1.PolicyRule{mayDo("*"), may("apiextensions.k8s.io", "customresourcedefinitions", "*")}
	change := f.grantEverywhere("no-deleter", append(everything, may(group, "things", "get", "list", "watch", "create", "patch"))...)
	crd, custom := definition(t, f)
	request := f.request(nil, crd, custom, configMap(t, "settings", "one"))
	var first apply.Result
	require.Eventually(t, func() bool { first = f.Apply(t.Context(), request); return clean(first) }, patience, often, "rights arrive late")

	left := f.Delete(t.Context(), f.owner, first.Inventory)
	require.NoError(t, left.Err)
	require.Len(t, left.Problems, 1)
	assert.Equal(t, "Thing", left.Problems[0].ID.Kind)
	assert.Equal(t, apply.ReasonForbidden, left.Problems[0].Reason)
	assert.ElementsMatch(t, first.Inventory, left.Inventory)
	assert.NotNil(t, f.thing())
	assert.True(t, f.definition())
	assert.NotNil(t, f.live("configmaps", "settings"))

	change(append(everything, may(group, "things", "*"))...)
	require.Eventually(t, func() bool {
		left = f.Delete(t.Context(), f.owner, left.Inventory)
		return len(left.Problems) == 0
	}, patience, often, "rights arrive late")
	assert.Nil(t, f.thing())
	assert.False(t, f.definition())
}

// P6: a custom object that is to stay keeps its definition; one that is not to stay goes.
func TestCustom_kept(t *testing.T) {
	f := newFixture(t)
	crd, kept := definition(t, f)
	kept.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: "disabled"})
	other := manifest.Object{Unstructured: kept.DeepCopy()}
	other.SetName("other")
	other.SetAnnotations(nil)
	first := f.until(f.request(nil, crd, kept, other), clean)

	left := f.mustApply(first.Inventory)
	assert.Empty(t, left.Inventory, "there is nothing to wait for")
	actions := map[string]apply.Action{}
	for _, change := range left.Changes {
		actions[change.ID.Name] = change.Action
	}
	assert.Equal(t, map[string]apply.Action{"thing": apply.Released, "other": apply.Deleted, crd.GetName(): apply.Released}, actions)
	assert.True(t, f.definition())
	assert.NotNil(t, f.thing())
}

// P6: nor does the Namespace of one that is to stay go, however long others take.
func TestCustom_keptInANamespace(t *testing.T) {
	f := newFixture(t)
	crd, held := definition(t, f)
	kept := manifest.Object{Unstructured: held.DeepCopy()}
	kept.SetName("kept")
	kept.SetNamespace(f.space())
	kept.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: "disabled"})
	held.SetFinalizers([]string{"example.com/hold"})
	space := parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+f.space()+"}}")
	first := f.until(f.request(nil, crd, space, held, kept), clean)

	left := f.Delete(t.Context(), f.owner, first.Inventory)
	require.NotEmpty(t, left.Waiting)
	f.drain()
	f.letGo()
	f.awaitNotice()
	left = f.Delete(t.Context(), f.owner, left.Inventory)
	require.NoError(t, left.Err)
	assert.Empty(t, left.Inventory)
	assert.True(t, f.hasSpace())
}
