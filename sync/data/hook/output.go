package hook

import (
	"slices"
	"strings"
	"sync"
)

// head keeps the beginning of what is written to it. A connection may write on after Run has
// returned.
type head struct {
	most int

	mu   sync.Mutex
	kept []byte
	cut  bool
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	room := min(h.most-len(h.kept), len(p))
	h.kept = append(h.kept, p[:room]...)
	h.cut = h.cut || room < len(p)
	return len(p), nil
}

// taken returns what is kept, and whether more was written.
func (h *head) taken() ([]byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.kept), h.cut
}

// tail keeps the end of what is written to it.
type tail struct {
	most int

	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(len(p)-t.most, 0):]...)
	if excess := len(t.kept) - t.most; excess > 0 {
		t.kept = append(t.kept[:0], t.kept[excess:]...)
	}
	return len(p), nil
}

// text returns what is kept, as valid UTF-8 without control characters: it ends up in a status and
// in terminals.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(t.kept), ""))
	return strings.Join(strings.Fields(clean), " ")
}
