package expansion_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/expansion"
)

func TestText_limitsWhatAliasesStandFor(t *testing.T) {
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		from, to := string(rune('0'+i)), string(rune('1'+i))
		laughs += "a" + to + ": &a" + to + " [" + strings.TrimSuffix(strings.Repeat("*a"+from+", ", 10), ", ") + "]\n"
	}
	long := "a: &x " + strings.Repeat("y", 100_000) + "\n"
	const values, size = "limit AliasNodes is 50000", "limit AliasBytes is 5242880"
	cases := map[string]struct{ reason, content, want string }{
		"none":       {"a text without aliases may be as large as it likes", strings.Repeat("[x]\n", 1000), ""},
		"few":        {"aliases as they are meant", "a: &x {b: c}\nd: *x\ne: {<<: *x}\n", ""},
		"many short": {"as many aliases to a short text", "a: &x y\nb: [" + strings.Repeat("*x,", 10_000) + "]", ""},
		"laughs":     {"lists of lists of lists", laughs, values},
		"itself":     {"a value that is part of itself", "a: &a [*a]\n", values},
		"long":       {"many aliases to one long text", long + "b: [" + strings.Repeat("*x,", 10_000) + "]", size},
		"keys":       {"a key may be an alias, too", long + "b: [" + strings.Repeat("{*x : 1},", 10_000) + "]", size},
		"merged":     {"and so may what is merged", "a: &x [{k: " + strings.Repeat("y", 100_000) + "}]\nb: [" + strings.Repeat("{<<: *x},", 10_000) + "]", size},
		"second":     {"every document counts", "a: 1\n---\n" + laughs, values},
		"broken":     {"what is not understood may be anything", "a: &x [*x\n", "not valid YAML"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := expansion.Text([]byte(c.content), expansion.Limits{})
			if c.want == "" {
				require.NoError(t, err, c.reason)
				return
			}
			assert.ErrorContains(t, err, c.want, c.reason)
		})
	}
}
