package apply

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/manifest"
)

func FuzzItem(f *testing.F) {
	f.Add(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","labels":null,"annotations":{"a":1}},"data":null,"stringData":{"a":"b"}}`)
	f.Add(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":7}`)
	f.Add(`{"apiVersion":7,"kind":[],"metadata":"a"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var content map[string]any
		if json.Unmarshal([]byte(text), &content) != nil {
			return
		}
		before, err := json.Marshal(content)
		require.NoError(t, err)
		object := manifest.Object{Unstructured: &unstructured.Unstructured{Object: content}}
		it, err := newItem(object, Request{Owner: Owner{HubID: "h", Kind: "K", Name: "n"}, DefaultNamespace: "d"})
		if err == nil {
			it.defines()
			it.place(&kind{namespaced: true})
			require.NoError(t, it.identify())
			payload, err := it.payload("u")
			require.NoError(t, err)
			assert.NotEmpty(t, payload)
		}
		after, err := json.Marshal(content)
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after), "a manifest is not changed")
	})
}

func TestNewItem_emptyManifest(t *testing.T) {
	it, err := newItem(manifest.Object{}, Request{})
	require.Error(t, err)
	assert.True(t, it.id.IsZero())
	_, err = newItem(manifest.Object{Unstructured: &unstructured.Unstructured{}}, Request{})
	require.Error(t, err)
}
