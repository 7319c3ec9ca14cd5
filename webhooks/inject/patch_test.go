package inject

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/membership"
)

func TestMetadataOf_endsBehindTheMetadata(t *testing.T) {
	obj, err := metadataOf([]byte(`{"kind": "Secret", "metadata": {"name": "a", "labels": {"app": "web"}}, "data": this is not looked at`))
	require.NoError(t, err)
	assert.Equal(t, "a", obj.Name)
	assert.Equal(t, map[string]string{"app": "web"}, obj.Labels)
}

// Whatever the API server may send, metadata is what a full decode says.
func FuzzMetadataOf(f *testing.F) {
	for _, seed := range []string{
		`{"metadata": {"name": "a", "annotations": {"a/b": "c"}}}`, `{"data": {"metadata": {"name": "b"}}, "metadata": {"generateName": "a-"}}`,
		`{"metadata": {"labels": null}}`, `{"metadata": null}`, `{}`, `[]`, `null`, ``, `{"metadata": 7}`, `{"a": [{}], "metadata": {"labels": {"a": 1}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := metadataOf(raw)
		if err != nil {
			return
		}
		var want struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		if json.Unmarshal(raw, &want) != nil || countKeys(raw) > 1 {
			return // no object that an API server sends
		}
		assert.Equal(t, want.Metadata.Name, got.Name)
		assert.Equal(t, want.Metadata.Labels, got.Labels)
		assert.Equal(t, want.Metadata.Annotations, got.Annotations)
	})
}

// countKeys counts keys that a decoder takes for metadata: it knows no case, and takes the last.
func countKeys(raw []byte) (n int) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(raw, &keys) != nil {
		return 0
	}
	for key := range keys {
		if key != "metadata" && len(key) == len("metadata") {
			n++
		}
	}
	return n + 1
}

func TestPatchOf_changesMetadataAlone(t *testing.T) {
	web := "web"
	for _, c := range []struct{ reason, object, want string }{
		{"there is nothing yet", `{"metadata": {"name": "a"}, "spec": {"selector": {"app": "x"}}}`,
			`{"metadata": {"name": "a", "annotations": {"a~b/c": "web"}, "labels": {"l/l": "web"}}, "spec": {"selector": {"app": "x"}}}`},
		{"there is something", `{"metadata": {"annotations": {"x": "y"}, "labels": {"l/l": "old"}}}`,
			`{"metadata": {"annotations": {"x": "y", "a~b/c": "web"}, "labels": {"l/l": "web"}}}`},
		{"it is empty", `{"metadata": {"annotations": {}, "labels": {}}}`,
			`{"metadata": {"annotations": {"a~b/c": "web"}, "labels": {"l/l": "web"}}}`},
	} {
		obj, err := metadataOf([]byte(c.object))
		require.NoError(t, err, c.reason)
		ops := patchOf(obj, membership.Marks{Annotations: map[string]*string{"a~b/c": &web}, Labels: map[string]*string{"l/l": &web}})
		assert.JSONEq(t, c.want, applyPatch(t, c.object, ops), c.reason)
	}
	obj, err := metadataOf([]byte(`{"metadata": {"annotations": {"a~b/c": "web", "x": "y"}}}`))
	require.NoError(t, err)
	ops := patchOf(obj, membership.Marks{Annotations: map[string]*string{"a~b/c": nil}})
	assert.JSONEq(t, `{"metadata": {"annotations": {"x": "y"}}}`, applyPatch(t, `{"metadata": {"annotations": {"a~b/c": "web", "x": "y"}}}`, ops))
}

func applyPatch(t *testing.T, object string, ops any) string {
	t.Helper()
	text, err := json.Marshal(ops)
	require.NoError(t, err)
	patch, err := jsonpatch.DecodePatch(text)
	require.NoError(t, err)
	patched, err := patch.Apply([]byte(object))
	require.NoError(t, err)
	return string(patched)
}
