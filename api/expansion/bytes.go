package expansion

import "io"

// BytesReader returns a reader of the same bytes, which fails with tooMany as soon as there are more of
// them than that. What it returned until then is within the limit.
func BytesReader(r io.Reader, most int64, tooMany error) io.Reader {
	return &bytesReader{from: r, left: most, tooMany: tooMany}
}

type bytesReader struct {
	from    io.Reader
	left    int64
	tooMany error
}

// Read implements io.Reader.
func (r *bytesReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, r.tooMany
	}
	return n, err
}
