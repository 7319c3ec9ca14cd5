package plain_test

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/render/plain"
)

// Whatever is in a file, Render returns; what it returns as an object is one
// that survives the way through JSON unchanged, which is what the API server
// and every cache rely on; and every place is in the file.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		head, head + "---\n" + other, head + "a: &a [*a]\n", "a: b: c", "- 1\n- 2.50\n", "{", "%YAML 1.1\n---\n...", "--- |\n text",
		head + "data: {on: 0644, 1.0: ~, <<: {x: y}}", "apiVersion: v1\nkind: List\nitems: [{metadata: {name: x}}]",
		`{"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "n": 1e400}`, "\xff\xfe", "a: \x00", "? [a]\n: b", "!!binary aGk=: x",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, content []byte, asJSON bool) {
		name := "a.yaml"
		if asJSON {
			name = "a.json"
		}
		lines := 1 + bytes.Count(content, []byte("\n")) + bytes.Count(content, []byte("\r"))

		objects, problems, err := plain.Render(t.Context(), fstest.MapFS{name: {Data: content}}, plain.Options{})

		require.NoError(t, err)
		for _, o := range objects {
			assert.NotEmpty(t, o.GetName())
			assert.NotEmpty(t, o.GetKind())
			assert.NotEmpty(t, o.GetAPIVersion())
			assert.LessOrEqual(t, o.Line, lines)
			encoded, err := o.MarshalJSON()
			require.NoError(t, err)
			var decoded unstructured.Unstructured
			require.NoError(t, decoded.UnmarshalJSON(encoded))
			assert.Equal(t, decoded.Object, o.Object)
		}
		for _, p := range problems {
			assert.NotEmpty(t, p.Reason)
			assert.NotEmpty(t, p.Message)
			assert.NotContains(t, p.Message, "\n")
			assert.LessOrEqual(t, p.Line, lines)
		}
	})
}
