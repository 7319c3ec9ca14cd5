package release

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// Requests that were made without a context end with the one that the configuration is bound to.
func TestBound_endsRequestsWithTheContext(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			_, _ = w.Write([]byte("begin"))
			_ = http.NewResponseController(w).Flush()
			close(arrived)
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	reason := errors.New("time is up")
	ctx, cancel := context.WithCancelCause(t.Context())
	client, err := rest.HTTPClientFor(bound(ctx, &rest.Config{Host: server.URL}))
	require.NoError(t, err)

	resp, err := client.Get(server.URL + "/fine")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	resp, err = client.Get(server.URL + "/hang")
	require.NoError(t, err)
	<-arrived
	cancel(reason)
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err, "a body that is being read ends")
	require.NoError(t, resp.Body.Close())

	_, err = client.Get(server.URL + "/fine")
	require.ErrorIs(t, err, reason, "and no new request begins")
}

func TestSettling_outlivesItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	settled, stop := settling(ctx)
	cancel()
	assert.NoError(t, settled.Err())
	stop()
	assert.Error(t, settled.Err())
}
