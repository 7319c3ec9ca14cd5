package excerpt

import (
	"slices"
	"sync"
)

// Buffer is a writer that keeps the beginning, or the end, of what is written to it. It is safe for
// concurrent use: a connection may write on after what it was opened for has returned.
type Buffer struct {
	most int
	end  bool

	mu   sync.Mutex
	kept []byte
	cut  bool
}

// NewHead returns a Buffer that keeps the first most bytes.
func NewHead(most int) *Buffer { return &Buffer{most: most} }

// NewTail returns a Buffer that keeps the last most bytes.
func NewTail(most int) *Buffer { return &Buffer{most: most, end: true} }

// Write implements io.Writer. It takes all of p, and never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	written := len(p)
	if excess := len(b.kept) + len(p) - b.most; excess > 0 {
		b.cut = true
		if b.end {
			p = p[max(len(p)-b.most, 0):]
			b.kept = slices.Delete(b.kept, 0, min(excess, len(b.kept)))
		} else {
			p = p[:len(p)-excess]
		}
	}
	b.kept = append(b.kept, p...)
	return written, nil
}

// Bytes returns a copy of what is kept, and whether more was written.
func (b *Buffer) Bytes() (kept []byte, cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kept), b.cut
}

// String returns what is kept.
func (b *Buffer) String() string {
	kept, _ := b.Bytes()
	return string(kept)
}
