package git_test

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"strings"
	"sync"
)

// sizes notes how many objects each pack has that a server sends.
type sizes struct {
	mu      sync.Mutex
	objects []uint32
}

func (s *sizes) measure(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if !strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
		return w
	}
	return &packWriter{ResponseWriter: w, sizes: s}
}

// packWriter finds the header of the pack in what passes through it.
type packWriter struct {
	http.ResponseWriter
	sizes *sizes
	seen  []byte
	found bool
}

func (w *packWriter) Write(p []byte) (int, error) {
	if !w.found {
		w.seen = append(w.seen, p...)
		if at := bytes.Index(w.seen, []byte("PACK")); at >= 0 && len(w.seen) >= at+12 {
			w.found = true
			w.sizes.mu.Lock()
			w.sizes.objects = append(w.sizes.objects, binary.BigEndian.Uint32(w.seen[at+8:]))
			w.sizes.mu.Unlock()
		}
	}
	return w.ResponseWriter.Write(p)
}

// Flush is asked for by the server.
func (w *packWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }
