package dashboard

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCompressed(t *testing.T) {
	page := strings.Repeat("<td>berlin</td>", 1000)
	cases := map[string]struct {
		reason         string
		path, kind     string
		accept, answer string
		encoding       string
	}{
		"Page":         {"it is large", "/", "text/html; charset=utf-8", "gzip, deflate, br, zstd", page, "gzip"},
		"OldBrowser":   {"it takes no gzip", "/", "text/html; charset=utf-8", "", page, ""},
		"Small":        {"it would become larger", "/", "text/html; charset=utf-8", "gzip", "<p>", ""},
		"Picture":      {"it is compressed already", "/logos/x", "image/png", "gzip", page, ""},
		"Stream":       {"events are to arrive at once", "/live", "text/event-stream", "gzip", page, ""},
		"StreamOfText": {"whatever it has", "/live", "text/html", "gzip", page, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			handler, err := compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				_, err := io.WriteString(w, tc.answer)
				assert.NoError(t, err)
			}))
			require.NoError(t, err)
			request := httptest.NewRequest(http.MethodGet, tc.path, nil)
			request.Header.Set("Accept-Encoding", tc.accept)
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			require.Equal(t, tc.encoding, recorder.Header().Get("Content-Encoding"), tc.reason)
			var body io.Reader = recorder.Body
			if tc.encoding != "" {
				assert.Equal(t, "Accept-Encoding", recorder.Header().Get("Vary"))
				assert.Less(t, recorder.Body.Len(), len(page)/20)
				body, err = gzip.NewReader(recorder.Body)
				require.NoError(t, err)
			}
			got, err := io.ReadAll(body)
			require.NoError(t, err)
			assert.Equal(t, tc.answer, string(got))
		})
	}
}
