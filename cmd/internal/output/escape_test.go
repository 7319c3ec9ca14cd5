package output

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEscape(t *testing.T) {
	for reason, tc := range map[string]struct{ in, want string }{
		"plain text stays":                         {"naïve\ttext 漢字 ✓", "naïve\ttext 漢字 ✓"},
		"an escape sequence":                       {"a\x1b[2Jb", "a^[[2Jb"},
		"a control character of eight bits":        {"a\u009b2J", `a\u009b2J`},
		"the same as a byte that is not UTF-8":     {"a\x9b2J", "a\uFFFD2J"},
		"bells, backspaces and deletes":            {"a\a\b\x7f", `a^G^H\u007f`},
		"lines stay one":                           {"a\nb\r\nc", "a b  c"},
		"text that is shown in another order":      {"a\u202eb\u2066", `a\u202eb\u2066`},
		"a zero, at which some terminals stop":     {"a\x00b", "a^@b"},
		"what is broken in the middle of a letter": {"a\xe6\xbc", "a\uFFFD\uFFFD"},
	} {
		assert.Equal(t, tc.want, Escape(tc.in), reason)
	}
}
