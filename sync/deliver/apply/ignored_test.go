package apply_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/manifest"
)

func ignoring(t *testing.T, pointers ...string) *ignore.Rules {
	t.Helper()
	rules, err := ignore.Compile([]v1alpha1.IgnoredDifference{{Target: &v1alpha1.DifferenceTarget{Kind: "Deployment"}, JSONPointers: pointers}})
	require.NoError(t, err)
	return rules
}

// scale does what a HorizontalPodAutoscaler does.
func (f *fixture) scale(replicas int) {
	f.t.Helper()
	_, err := f.admin.dynamic.Resource(resource("deployments")).Namespace(f.namespace).Patch(f.t.Context(), "web", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "scale")
	require.NoError(f.t, err)
}

func (f *fixture) replicas() int64 {
	f.t.Helper()
	n, _, err := unstructured.NestedInt64(f.live("deployments", "web").Object, "spec", "replicas")
	require.NoError(f.t, err)
	return n
}

func (f *fixture) containers() []any {
	f.t.Helper()
	list, _, err := unstructured.NestedSlice(f.live("deployments", "web").Object, "spec", "template", "spec", "containers")
	require.NoError(f.t, err)
	return list
}

// What an autoscaler sets is neither drift nor written, and applied again once it is not ignored any more.
func TestIgnored_whatAnAutoscalerSets(t *testing.T) {
	f := newFixture(t)
	request := f.request(nil, parse(t, deploymentText), configMap(t, "marker", "one"))
	request.Ignored = ignoring(t, "/spec/replicas")
	first := f.Apply(t.Context(), request)
	requireClean(t, first)
	request.Inventory = first.Inventory
	assert.EqualValues(t, 0, f.replicas(), "it begins with what the manifest says")

	f.scale(5)
	f.awaitNotice() // the field is not ours any more
	f.requests.take()
	given := f.Apply(t.Context(), request)
	requireClean(t, given)
	assert.Empty(t, given.Changes, "which is no drift")
	assert.EqualValues(t, 5, f.replicas())
	assert.Len(t, f.requests.take(), 2, "whose it is was looked at once")
	seen, _ := f.Observe(f.owner)
	assert.True(t, seen.Settled)

	f.scale(7)
	f.assertQuiet("marker")
	f.Apply(t.Context(), request)
	assert.Len(t, f.requests.take(), 1, "nothing is asked of the Deployment any more")

	changed := parse(t, deploymentText)
	require.NoError(t, unstructured.SetNestedField(changed.Object, int64(5), "spec", "minReadySeconds"))
	request.Objects = []manifest.Object{changed, configMap(t, "marker", "one")}
	assert.Equal(t, []apply.Change{{ID: first.Inventory[0], Action: apply.Configured}}, f.Apply(t.Context(), request).Changes)
	assert.EqualValues(t, 7, f.replicas(), "another revision leaves it, too")

	f.restart()
	requireClean(t, f.Apply(t.Context(), request))
	assert.EqualValues(t, 7, f.replicas(), "and so does another process")

	request.Ignored = nil
	assert.Equal(t, []apply.Change{{ID: first.Inventory[0], Action: apply.Corrected}}, f.Apply(t.Context(), request).Changes)
	assert.EqualValues(t, 0, f.replicas())
}

// A field that no other manager has set is not removed when it begins to be ignored, and created again as wanted
// with the object.
func TestIgnored_whatNobodySetYet(t *testing.T) {
	f := newFixture(t)
	request := f.request(nil, parse(t, deploymentText))
	request.Inventory = f.Apply(t.Context(), request).Inventory
	request.Ignored = ignoring(t, "/spec/replicas")
	requireClean(t, f.Apply(t.Context(), request))
	assert.EqualValues(t, 0, f.replicas(), "left out, it would be 1 by default")

	f.scale(3)
	f.awaitNotice()
	requireClean(t, f.Apply(t.Context(), request))
	f.delete("deployments", "web")
	f.awaitNotice()
	result := f.until(request, clean)
	assert.Equal(t, apply.Created, result.Changes[0].Action)
	assert.EqualValues(t, 0, f.replicas())
}

// What is set at the very moment of a write is not set back.
func TestIgnored_whatIsSetDuringAWrite(t *testing.T) {
	f := newFixture(t)
	request := f.request(nil, parse(t, deploymentText))
	request.Inventory = f.Apply(t.Context(), request).Inventory
	f.requests.interfere(http.MethodPatch, func() { f.scale(4) })
	request.Ignored = ignoring(t, "/spec/replicas")
	requireClean(t, f.Apply(t.Context(), request))
	assert.EqualValues(t, 4, f.replicas())
}

// An injected container is no drift, and the image that another field manager sets in ours is left to it.
func TestIgnored_whatIsInjected(t *testing.T) {
	f := newFixture(t)
	request := f.request(nil, parse(t, deploymentText))
	request.Ignored = ignoring(t, "/spec/template/spec/containers/0/image", "/spec/template/metadata/annotations/injected")
	request.Inventory = f.Apply(t.Context(), request).Inventory
	f.edit("deployments", "web", `{"spec":{"template":{"metadata":{"annotations":{"injected":"yes"}},"spec":{"containers":[
		{"name":"sidecar","image":"sidecar"},{"name":"web","image":"web:7","args":["theirs"]}]}}}}`)
	f.awaitNotice()
	result := f.Apply(t.Context(), request)
	requireClean(t, result)
	assert.Empty(t, result.Changes)
	assert.Equal(t, "web:7", f.containers()[1].(map[string]any)["image"])

	changed := parse(t, deploymentText)
	require.NoError(t, unstructured.SetNestedSlice(changed.Object, []any{
		map[string]any{"name": "web", "image": "web:2", "args": []any{"ours"}}, map[string]any{"name": "more", "image": "more"},
	}, "spec", "template", "spec", "containers"))
	request.Objects = []manifest.Object{changed}
	requireClean(t, f.Apply(t.Context(), request))
	images := map[string]any{}
	for _, c := range f.containers() {
		images[c.(map[string]any)["name"].(string)] = c.(map[string]any)["image"]
	}
	assert.Equal(t, map[string]any{"sidecar": "sidecar", "web": "web:7", "more": "more"}, images)
	assert.Equal(t, []any{"ours"}, f.containers()[1].(map[string]any)["args"], "the rest is ours to set")
}

// Nothing is looked at of objects that no entry selects.
func TestIgnored_costsNothingElsewhere(t *testing.T) {
	f := newFixture(t)
	request := f.request(nil, configMaps(t, 5)...)
	request.Ignored = ignoring(t, "/data/key")
	request.Inventory = f.Apply(t.Context(), request).Inventory
	f.edit("configmaps", "settings-003", `{"data":{"key":"edited"}}`)
	f.awaitNotice()
	f.requests.take()
	requireClean(t, f.Apply(t.Context(), request))
	assert.Equal(t, []string{"PATCH /api/v1/namespaces/" + f.namespace + "/configmaps/settings-003"}, f.requests.take())
	assert.Equal(t, "one", f.value("settings-003"))
}
