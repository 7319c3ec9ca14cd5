package webpage_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/webpage"
)

func TestRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		status int
		page   bool
	}{
		"a page":              {"text/html; charset=utf-8", http.StatusOK, true},
		"an odd page":         {"Text/HTML", http.StatusOK, true},
		"XHTML":               {"application/xhtml+xml", http.StatusOK, true},
		"a page of an error":  {"text/html", http.StatusForbidden, false},
		"a file":              {"application/gzip", http.StatusOK, false},
		"a file without kind": {"", http.StatusOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{c.kind}
				w.WriteHeader(c.status)
			}))
			defer server.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			require.NoError(t, err)

			res, err := (&http.Client{Transport: webpage.Refuse(server.Client().Transport)}).Do(req)

			if c.page {
				require.ErrorIs(t, err, webpage.Err)
				return
			}
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			assert.Equal(t, c.status, res.StatusCode)
		})
	}
}
