// Package bomb makes what is small as long as it is packed, and large when it is unpacked, for tests of
// the limits on what others send. Packing all of it would take most of the time of such a test: the race
// detector watches each byte.
package bomb

import (
	"bytes"
	"compress/gzip"
	"testing"

	"github.com/stretchr/testify/require"
)

// memberSize is about how much of a text is compressed: a thousand times what it becomes.
const memberSize = 1 << 20

// Part is a text that is there so many times in a row.
type Part struct {
	Text  string
	Times int
}

// Gzip returns the parts one after the other, compressed. However often a text is there, about a megabyte
// of it is compressed: members of a gzip file that follow one another are one content (RFC 1952).
func Gzip(t testing.TB, parts ...Part) []byte {
	t.Helper()
	var packed []byte
	for _, p := range parts {
		each := max(1, memberSize/max(1, len(p.Text)))
		packed = append(packed, bytes.Repeat(member(t, p.Text, each), p.Times/each)...)
		packed = append(packed, member(t, p.Text, p.Times%each)...)
	}
	return packed
}

func member(t testing.TB, text string, times int) []byte {
	t.Helper()
	if times == 0 {
		return nil
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	require.NoError(t, err)
	_, err = zip.Write(bytes.Repeat([]byte(text), times))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	return packed.Bytes()
}
