package git

import (
	"errors"
	"io"
	"math"
)

// boundedBody fails with over after left bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
	over error
	// hit says that over has been returned.
	hit bool
}

// boundedAnswer bounds the answer to a request for a pack until lift is called, once the pack
// begins: the decoder keeps every line that comes before it.
func boundedAnswer(body io.ReadCloser, l Limits) *boundedBody {
	over := limitError("NegotiationBytes", l.NegotiationBytes, "the server says too much before it sends the pack")
	return &boundedBody{ReadCloser: body, left: l.NegotiationBytes, over: over}
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.hit = true
		return 0, b.over
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// lift ends the bound.
func (b *boundedBody) lift() {
	b.left = math.MaxInt64
}

// reason returns over if that is why the decoding of the body failed with err: decoders do not wrap
// what they read.
func (b *boundedBody) reason(err error) error {
	if b.hit && !errors.Is(err, b.over) {
		return b.over
	}
	return err
}
