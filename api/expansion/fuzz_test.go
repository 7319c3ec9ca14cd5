package expansion_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/api/expansion"
)

// FuzzText shows that a text that passes does not become more than its own values, as Nodes estimates
// them, and those that aliases may stand for.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"a: &x [1, 2]\nb: *x\n", "a: &a [*a]", "&x a: *x", "a: &x {b: c}\nd: {<<: *x}\n", "- - - a\n", "? a\n: b\n", "[{},{},{}]", "---\na\n---\nb\n",
		"a: &x " + strings.Repeat("y", 100) + "\nb: [" + strings.Repeat("*x,", 100) + "]",
	} {
		f.Add(seed)
	}
	limits := expansion.Limits{AliasNodes: 1000, AliasBytes: 10_000}
	f.Fuzz(func(t *testing.T, text string) {
		if expansion.Text([]byte(text), limits) != nil {
			return
		}
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for {
			var value any
			if decoder.Decode(&value) != nil {
				return
			}
			assert.LessOrEqual(t, valuesIn(value), 2*expansion.Nodes([]byte(text))+limits.AliasNodes)
		}
	})
}
