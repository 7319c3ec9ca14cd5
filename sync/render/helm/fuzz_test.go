package helm

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// FuzzAppendObjects shows that whatever templates render to, it is refused, or consists of objects with a
// kind.
func FuzzAppendObjects(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "---\n---\n# nothing\n", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret}]\n",
		"a: &a [*a]", "[]", "kind: x", "apiVersion: v1\nkind: List\nitems: 1\n", "apiVersion: 1\nkind: 2\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := appendObjects(nil, "a.yaml", []byte(text))
		if err != nil {
			assert.ErrorIs(t, err, ErrRender)
			return
		}
		for _, o := range objects {
			assert.NotEmpty(t, o.GetKind(), text)
		}
	})
}
