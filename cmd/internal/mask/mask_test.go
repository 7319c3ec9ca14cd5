package mask_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/cmd/internal/mask"
)

func secret(data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": data,
		"metadata": map[string]any{"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}},
	}}
}

func TestPair(t *testing.T) {
	before, after := secret(map[string]any{"same": "a", "changed": "a", "gone": "a"}), secret(map[string]any{"same": "a", "changed": "b", "new": "b"})
	hiddenBefore, hiddenAfter := mask.Pair(before, after)
	assert.Equal(t, map[string]any{"same": "***", "changed": "*** (before)", "gone": "***"}, hiddenBefore.Object["data"])
	assert.Equal(t, map[string]any{"same": "***", "changed": "*** (after)", "new": "***"}, hiddenAfter.Object["data"])
	assert.Equal(t, "a", before.Object["data"].(map[string]any)["same"], "the originals stay as they are")
	assert.NotContains(t, hiddenBefore.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"], "hunter2")

	_, hiddenAfter = mask.Pair(nil, after)
	assert.Equal(t, map[string]any{"same": "***", "changed": "***", "new": "***"}, hiddenAfter.Object["data"])
	hiddenBefore, hiddenAfter = mask.Pair(before, nil)
	assert.Nil(t, hiddenAfter)
	assert.Equal(t, map[string]any{"same": "***", "changed": "***", "gone": "***"}, hiddenBefore.Object["data"])
}

func TestSecret_oddOnes(t *testing.T) {
	odd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": "hunter2"}}
	assert.NotContains(t, mask.Secret(odd).Object, "hunter2")
	other := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Secret", "data": map[string]any{"a": "b"}}}
	assert.Same(t, other, mask.Secret(other), "a Secret of another group is not ours to hide")
}

// templating is a KubernetesApplication with templates of Secrets.
func templating(secrets ...*unstructured.Unstructured) *unstructured.Unstructured {
	var templates []any
	for _, secret := range secrets {
		templates = append(templates, map[string]any{"spec": map[string]any{"template": secret.Object}})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.waybill.dev/v1alpha1", "kind": "KubernetesApplication",
		"spec": map[string]any{"resourceTemplates": templates},
	}}
}

func named(name, value string) *unstructured.Unstructured {
	made := secret(map[string]any{"password": value})
	made.SetName(name)
	return made
}

// dump is all that is shown of an object.
func dump(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	text, err := object.MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

// A template of a Secret is as secret as the Secret, and so is what kubectl remembers of it.
func TestSecret_templated(t *testing.T) {
	app := templating(named("sql", "hunter2"))
	resource := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.waybill.dev/v1alpha1", "kind": "KubernetesApplicationResource",
		"spec": map[string]any{"template": secret(map[string]any{"password": "hunter2"}).Object},
	}}
	remembering := templating()
	remembering.SetAnnotations(map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": dump(t, app), "other": "kept",
	})
	for _, object := range []*unstructured.Unstructured{app, resource, remembering} {
		require.Contains(t, dump(t, object), "hunter2")
		assert.NotContains(t, dump(t, mask.Secret(object)), "hunter2")
	}
	assert.Equal(t, "kept", mask.Secret(remembering).GetAnnotations()["other"])

	harmless := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}}
	harmless.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": dump(t, harmless)})
	assert.Same(t, harmless, mask.Secret(harmless), "nothing to hide")
}

// Templates are compared by the Secret that they are of: one that moves is no change.
func TestPair_templated(t *testing.T) {
	before := templating(named("a", "one"), named("b", "two"))
	after := templating(named("new", "four"), named("b", "three"), named("a", "one"))
	hiddenBefore, hiddenAfter := mask.Pair(before, after)
	assert.Equal(t, []string{"***", "*** (before)"}, passwords(hiddenBefore))
	assert.Equal(t, []string{"***", "*** (after)", "***"}, passwords(hiddenAfter))
}

func passwords(app *unstructured.Unstructured) []string {
	var found []string
	templates, _, _ := unstructured.NestedSlice(app.Object, "spec", "resourceTemplates")
	for _, template := range templates {
		value, _, _ := unstructured.NestedString(template.(map[string]any), "spec", "template", "data", "password")
		found = append(found, value)
	}
	return found
}
