package metadata

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// C21: no more is saved than is loaded again.
func TestPack_isBounded(t *testing.T) {
	large := func(value any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Large", "apiVersion": "v1", "spec": value}}
	}
	// What is before the bound is compressed, which is what takes long: so that is little.
	const little = 1 << 10
	for name, objects := range map[string][]*unstructured.Unstructured{
		"bytes":  {large(strings.Repeat("x", little)), large(strings.Repeat("x", maxText-little))},
		"values": {large(make([]any, little)), large(make([]any, maxValues-little))},
	} {
		_, _, err := pack(objects)
		require.ErrorIs(t, err, ErrTooLarge, name)
	}
}

// FuzzDecode shows that no text makes decode panic, and that what it returns is saved and loaded as it is.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{}\n", `{"kind":"A","apiVersion":"v1","metadata":{"name":"a"}}` + "\n", `{"kind":"A"}`, "null\n", "[]\n", `{"kind":"AList","items":[{}]}` + "\n",
		`{"kind":"A","metadata":[],"n":1e400}` + "\n", `{"kind":"A","metadata":{"managedFields":3},"status":1,"f":1.5,"i":9007199254740993}` + "\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := decode(bytes.NewReader(text))
		if err != nil {
			return
		}
		packed, digest, err := pack(objects)
		require.NoError(t, err)
		again, err := unpack(packed, digest)
		require.NoError(t, err)
		second, digestAgain, err := pack(again)
		require.NoError(t, err)
		assert.Equal(t, digest, digestAgain)
		assert.Equal(t, packed, second)
	})
}
