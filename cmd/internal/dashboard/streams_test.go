package dashboard

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// A hundred tabs of one user, all seen at once, cost no more than maxStreamsEach streams of one connection, and others
// are served.
func TestShared_hundredTabs(t *testing.T) {
	api := hub(t)
	s := openShared(t, account(t, api))
	b := s.signIn("jane")
	require.Equal(t, 2, protocol(t, b), "HTTP/2")
	refused := 0
	for range 100 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.address+"/live?kind="+v1alpha1.GitSyncKind, nil)
		require.NoError(t, err)
		response, err := b.Do(request)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		if response.StatusCode == http.StatusTooManyRequests {
			assert.NotEmpty(t, response.Header.Get("Retry-After"))
			refused++
		}
	}
	assert.Equal(t, 100-maxStreamsEach, refused)
	assert.Equal(t, http.StatusOK, b.page("/catalog").status, "pages are shown")
	s.signIn("john").stream(url.Values{"kind": {v1alpha1.GitSyncKind}})
}

func protocol(t *testing.T, b *browser) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.address+"/static/static/style.css", nil)
	require.NoError(t, err)
	response, err := b.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	return response.ProtoMajor
}

// pipes is a listener whose connections hold nothing that was written until it is read.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// A stream that its client does not read is given up, whether or not the client ever goes.
func TestLive_clientThatDoesNotRead(t *testing.T) {
	s, one, err := newLocal(t.Context(), fleet.NewHub("hub", &rest.Config{Host: "https://127.0.0.1:1"}), "")
	require.NoError(t, err)
	s.pace.take, s.pace.ping = 100*time.Millisecond, 10*time.Millisecond
	listener := make(pipes, 1)
	go func() { _ = s.serve(listener, nil) }()
	t.Cleanup(func() { close(listener) })
	here, there := net.Pipe()
	t.Cleanup(func() { _ = here.Close() })
	listener <- there
	_, err = fmt.Fprintf(here, "GET /live?kind=GitSync HTTP/1.1\r\nHost: 127.0.0.1:8090\r\nCookie: waybill-dashboard-8090=%s\r\n\r\n", one.secret)
	require.NoError(t, err)
	open := func() int {
		s.inventory.feed.mu.Lock()
		defer s.inventory.feed.mu.Unlock()
		return len(s.inventory.feed.streams)
	}
	require.Eventually(t, func() bool { return open() == 1 }, limit, time.Millisecond, "it is open")
	require.Eventually(t, func() bool { return open() == 0 }, limit, often, "it is closed, as its client does not read")
}

// A stream ends by itself: a page that is still open opens another.
func TestLive_doesNotLastForEver(t *testing.T) {
	s := openShared(t, account(t, hub(t)))
	s.server.pace.life = 50 * time.Millisecond
	events, _ := s.signIn("jane").stream(url.Values{"kind": {v1alpha1.GitSyncKind}})
	for range events {
	}
}

// A stream on which nothing happens goes on: a browser that reads what there is has not left.
func TestShared_quietStream(t *testing.T) {
	s := openShared(t, account(t, hub(t)))
	b := s.signIn("jane")
	s.server.pace.take, s.server.pace.ping = 20*time.Millisecond, 200*time.Millisecond
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.address+"/live?kind="+v1alpha1.GitSyncKind, nil)
	require.NoError(t, err)
	response, err := b.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, 2, response.ProtoMajor)
	lines, pings := bufio.NewScanner(response.Body), 0
	for pings < 3 && lines.Scan() {
		if lines.Text() == ": still there" {
			pings++
		}
	}
	assert.Equal(t, 3, pings, "each comes long after what was written before had to be taken: %v", lines.Err())
}
