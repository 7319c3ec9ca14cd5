package install

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/render/values"
)

// What values are listed with grows with them, and not with how many there are below a long name, or a deep one.
func TestExplained_isBounded(t *testing.T) {
	const many = 5000
	inner := map[string]any{}
	for i := range many {
		inner[strconv.Itoa(i)] = i
	}
	deep := inner
	for range 90 {
		deep = map[string]any{"a": deep}
	}
	for reason, of := range map[string]map[string]any{"long": {strings.Repeat("x", 100_000): inner}, "deep": deep} {
		merged := &Merged{layers: []values.Layer{{From: "spec.values"}}, root: merge([]values.Layer{{Values: of}})}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		lines := merged.Explained()
		runtime.ReadMemStats(&after)
		assert.Len(t, lines, many, reason)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(many*4000), reason)
		assert.LessOrEqual(t, len(lines[0].Name), maxName, reason)
		assert.Equal(t, "0", lines[0].Path()[len(lines[0].Path())-1], reason)
	}
}
