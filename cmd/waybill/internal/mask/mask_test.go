package mask_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/cmd/waybill/internal/mask"
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
