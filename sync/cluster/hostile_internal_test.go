package cluster

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// hostile is an API server that answers as a test says, and otherwise what the first contact needs.
type hostile struct {
	*httptest.Server
	paths map[string]http.HandlerFunc
}

func newHostile(t testing.TB, paths map[string]http.HandlerFunc) *hostile {
	t.Helper()
	known := map[string]string{
		"/readyz":                        "ok",
		"/version":                       `{"gitVersion":"v1.36.4"}`,
		"/api/v1/namespaces/kube-system": `{"metadata":{"uid":"u"}}`,
	}
	h := &hostile{paths: paths}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := h.paths[r.URL.Path]
		if !ok && known[r.URL.Path] == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if ok {
			answer(w, r)
			return
		}
		_, _ = io.WriteString(w, known[r.URL.Path])
	}))
	h.EnableHTTP2 = true
	h.StartTLS()
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

func (h *hostile) config() *rest.Config {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	return &rest.Config{Host: h.URL, BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

// endless is how much is sent where no limit stops it: more than any limit, and not more than a test
// machine has.
const endless = 768 << 20

// sends begins an answer, and repeats the rest of it endlessly.
func sends(head, rest string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { flood(w, head, rest) }
}

func flood(w io.Writer, head, rest string) {
	_, err := io.WriteString(w, head)
	piece := []byte(strings.Repeat(rest, 64<<10/len(rest)))
	for sent := 0; sent < endless && err == nil; sent += len(piece) {
		_, err = w.Write(piece)
	}
}

// packed is like sends, but compressed: the rest is compressed once and sent again and again, because
// what follows one another in gzip is one content.
func packed(t testing.TB, head, rest string) http.HandlerFunc {
	t.Helper()
	first := compressed(t, head)
	piece := compressed(t, strings.Repeat(rest, pieceSize/len(rest)))
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, err := w.Write(first)
		for sent := 0; sent < endless && err == nil; sent += pieceSize {
			_, err = w.Write(piece)
		}
	}
}

// pieceSize is how much of a compressed answer is repeated.
const pieceSize = 4 << 20

func compressed(t testing.TB, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	unpacked := gzip.NewWriter(&b)
	_, err := io.WriteString(unpacked, content)
	require.NoError(t, err)
	require.NoError(t, unpacked.Close())
	return b.Bytes()
}

// typed sends an answer as another type than JSON.
func typed(media string, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", media)
		answer(w, r)
	}
}
