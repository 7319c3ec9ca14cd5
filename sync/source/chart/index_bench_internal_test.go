package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkParseIndex compares reading an index piece by piece with decoding it as a whole.
func BenchmarkParseIndex(b *testing.B) {
	const version = "  - apiVersion: v2\n    description: A chart of which little is said, in one line\n    urls:\n    - https://example.com/a.tgz\n    version: 1.0.0\n"
	text := "apiVersion: v1\nentries:\n  a:\n" + strings.Repeat(version, 20_000)
	limits := DefaultLimits()
	limits.IndexEntryBytes = int64(len(text))
	b.Run("pieces", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := parseIndex(strings.NewReader(text), DefaultLimits())
			require.NoError(b, err)
		}
	})
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, readWhole(strings.NewReader(text), newIndexBuilder(limits), nil))
		}
	})
}
