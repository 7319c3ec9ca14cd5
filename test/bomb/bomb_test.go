package bomb_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/bomb"
)

func TestGzip_isOneContent(t *testing.T) {
	large := strings.Repeat("a", 3<<20)
	for reason, tc := range map[string]struct {
		parts []bomb.Part
		want  string
	}{
		"the order is that of the parts":             {[]bomb.Part{{"[", 1}, {"{},", 2}, {"{}]", 1}}, "[{},{},{}]"},
		"a text is repeated beyond a member":         {[]bomb.Part{{"ab", 1<<20 + 1}}, strings.Repeat("ab", 1<<20+1)},
		"a text that is larger than a member":        {[]bomb.Part{{large, 2}, {"b", 1}}, large + large + "b"},
		"a text that is not there, and an empty one": {[]bomb.Part{{"a", 1}, {"b", 0}, {"", 5}, {"c", 1}}, "ac"},
	} {
		unpacked, err := gzip.NewReader(bytes.NewReader(bomb.Gzip(t, tc.parts...)))
		require.NoError(t, err, reason)
		got, err := io.ReadAll(unpacked)
		require.NoError(t, err, reason)
		assert.True(t, tc.want == string(got), reason)
	}
}

func TestGzip_isSmall(t *testing.T) {
	assert.Less(t, len(bomb.Gzip(t, bomb.Part{Text: "{},", Times: 40 << 20})), 200_000, "of 120 MiB")
}
