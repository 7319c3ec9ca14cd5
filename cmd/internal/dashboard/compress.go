package dashboard

import (
	"fmt"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// compressMinimum is how large an answer is at least that is worth compressing.
const compressMinimum = 1024

// compressed answers with gzip where the browser takes it. Pages are mostly the same few words: they shrink to a
// twentieth. Nothing in them is a secret that pages of others could find out by the size of an answer: cookies are not
// sent with their requests, and what is secret is masked.
func compressed(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(compressMinimum), gzhttp.EnableZstd(false), // whose encoders take megabytes each
		gzhttp.ContentTypes([]string{"text/html", "text/css", "text/javascript", "image/svg+xml", "text/plain", "application/yaml", "application/json"}),
	)
	if err != nil {
		return nil, fmt.Errorf("compress answers: %w", err)
	}
	zipped := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live" {
			next.ServeHTTP(w, r) // each event is to arrive at once
			return
		}
		zipped.ServeHTTP(w, r)
	}), nil
}
