package diff

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnified(t *testing.T) {
	for reason, tc := range map[string]struct{ old, new, want string }{
		"equal":   {"a\n", "a\n", ""},
		"created": {"", "a\nb\n", "--- live\n+++ new\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"deleted": {"a\n", "", "--- live\n+++ new\n@@ -1,1 +0,0 @@\n-a\n"},
		"changed, with what is around": {
			"1\n2\n3\n4\na\n5\n6\n7\n8\n", "1\n2\n3\n4\nb\n5\n6\n7\n8\n", "--- live\n+++ new\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-a\n+b\n 5\n 6\n 7\n",
		},
		"lines that are there more than once": {"x\nx\nx\n", "x\nx\nx\nx\n", "--- live\n+++ new\n@@ -1,3 +1,4 @@\n x\n x\n x\n+x\n"},
	} {
		assert.Equal(t, tc.want, Unified("live", tc.old, "new", tc.new), reason)
	}
}

// Lines that are in a text many times are compared as well. An algorithm that looks for the least difference does not come to an end of this.
func TestUnified_ofManyLines(t *testing.T) {
	const lines = 500_000
	text := func(step int) string {
		var b strings.Builder
		for i := range lines {
			b.WriteString(strconv.Itoa(i*step%101) + "\n")
		}
		return b.String()
	}
	found := Unified("live", "first\n"+text(1), "new", "first\n"+text(7))
	assert.Equal(t, lines-1, strings.Count(found, "\n+")-1, "the first line of each, and the header, besides")
	assert.True(t, strings.HasPrefix(found, "--- live\n+++ new\n@@ -1,500001 +1,500001 @@\n first\n 0\n-1\n"), found[:100])
}
