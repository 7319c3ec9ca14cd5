package values_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/sync/render/values"
)

// FuzzParse shows that values that were accepted are bounded, and that a refusal does not repeat them.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a: 1", "a: &x [1]\nb: *x", "- a", "hunter2", "a: {b: [", "\t", "a: !!binary x", "? [a]\n: b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := values.Parse([]byte("secret: hunter2\n" + text))
		if err != nil {
			assert.NotContains(t, err.Error(), "hunter2")
			return
		}
		var size expansion.Size
		size.Add(parsed)
		assert.LessOrEqual(t, size.Values, 2*strings.Count(text, "")+10+expansion.DefaultLimits().AliasNodes)
	})
}
