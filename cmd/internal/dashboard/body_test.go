package dashboard

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who does not send what they announce is not waited for, whether they are let in or not. Who sends it has all the time for the answer.
func TestServer_waitsForNoBody(t *testing.T) {
	b := start(t, hub(t).RESTConfig(), "default")
	const long = 100 * time.Millisecond
	b.server.sendForm = long
	handler, err := b.server.handler()
	require.NoError(t, err)
	cookie := ""
	answered := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slow" {
			handler.ServeHTTP(w, r)
			return
		}
		b.server.hurry(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			answered <- answerSlowly(r, 3*long)
		})).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	send := func(path, sent string) string {
		conn, err := net.Dial("tcp", server.Listener.Addr().String()) //nolint:noctx // it ends with the deadline
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(limit)))
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 4\r\n\r\n%s", path, server.Listener.Addr(), cookie, sent)
		require.NoError(t, err)
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err, "it is answered")
		return strings.TrimSpace(line)
	}
	page := "/catalog/web/install"
	assert.Contains(t, send(page, "a"), "401")
	assert.Contains(t, send("/slow", "a=bc"), "200")
	require.NoError(t, <-answered)
	cookie = fmt.Sprintf("waybill-dashboard-%d=%s", server.Listener.Addr().(*net.TCPAddr).Port, b.session.secret)
	assert.Contains(t, send(page, "a"), "404", "who is let in is told that there is no such definition")
}

// answerSlowly reads a form, and goes on for a time. It returns why it could not.
func answerSlowly(r *http.Request, long time.Duration) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), long)
	defer cancel()
	<-ctx.Done()
	return r.Context().Err()
}
