package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

// packed is an object of a pack as a server may send it, whatever it says of its size.
type packed struct {
	kind    plumbing.ObjectType
	size    int64
	content []byte
}

func blob(content string) packed {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(content))
	_ = z.Close()
	return packed{plumbing.BlobObject, int64(len(content)), b.Bytes()}
}

// pack puts objects into a pack without a checksum, which is looked at last.
func pack(objects ...packed) *bytes.Reader {
	out := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(objects)))
	for _, o := range objects {
		head := []byte{byte(o.kind)<<4 | byte(o.size&0x0f)}
		for size := o.size >> 4; size > 0; size >>= 7 {
			head[len(head)-1] |= 0x80
			head = append(head, byte(size&0x7f))
		}
		out = append(append(out, head...), o.content...)
	}
	return bytes.NewReader(out)
}

// delta makes a result of a size from an object that is not in the pack.
func delta(result []byte) packed {
	o := blob("\x01" + string(result))
	o.kind = plumbing.REFDeltaObject
	o.content = append(make([]byte, 20), o.content...)
	return o
}

// A pack states the sizes of its objects before they need to be unpacked; what a server sends to keep
// us busy is refused by them.
func TestScan_refusesBeforeItUnpacks(t *testing.T) {
	limits := Limits{FileBytes: 1000, UnpackedBytes: 2500, Objects: 10}
	small := blob(strings.Repeat("x", 900))
	cases := map[string]struct {
		reason  string
		objects []packed
		says    string
	}{
		"one too large":        {"what follows the header is not looked at", []packed{{plumbing.BlobObject, 1 << 40, []byte("no zlib")}}, "limit FileBytes is 1000"},
		"larger than it says":  {"it ends where it should", []packed{{plumbing.BlobObject, 5, small.content}}, "exceeds declared size"},
		"many that are small":  {"together they are too large", []packed{small, small, small}, "limit UnpackedBytes is 2500"},
		"delta":                {"what it makes counts", []packed{delta([]byte{0x80, 0x10})}, "limit FileBytes is 1000"},
		"delta beyond numbers": {"a size that overflows is no way around", []packed{delta(bytes.Repeat([]byte{0xff}, 10))}, "limit FileBytes is 1000"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := scan(pack(c.objects...), limits)
			require.ErrorContains(t, err, c.says, c.reason)
		})
	}
	found, err := scan(pack(small, small), limits)
	require.NoError(t, err)
	assert.EqualValues(t, 2, found.objects)
}

// One repository that is too large, or that is not waited for any more, holds up no other.
func TestIngest_refusesWithoutItsTurn(t *testing.T) {
	g, err := createGeneration(t.TempDir(), 1)
	require.NoError(t, err)
	in := &intake{limits: Limits{FileBytes: 100}.orDefault(), quota: &quota{most: 1 << 20}, turn: newLock()}
	require.NoError(t, in.turn.acquire(t.Context()))
	ctx, end := context.WithTimeout(t.Context(), env.Limit)
	defer end()
	err = in.ingest(ctx, g, pack(blob(strings.Repeat("x", 900))))
	require.ErrorIs(t, err, ErrLimit)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = in.ingest(ended, g, pack(blob("x")))
	require.ErrorIs(t, err, context.Canceled)
	_, err = scan(heeding{pack(blob("x")), ended}, in.limits)
	require.ErrorIs(t, err, context.Canceled)
}
