package address_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/address"
)

const refusal = ": sources may not be there unless waybill-sync runs with --allow-local-sources"

func server(t *testing.T) (origin, host string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	return s.URL, u.Host
}

func clientOf(g address.Guard) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: g.DialContext, Proxy: g.Proxy}}
}

// It is what a name resolves to that counts.
func TestGuard_refusesWhatANameResolvesTo(t *testing.T) {
	_, host := server(t)
	_, port, err := net.SplitHostPort(host)
	require.NoError(t, err)
	cases := map[string]struct{ address, want string }{
		"Address": {host, "127.0.0.1 is a loopback address" + refusal},
		"Name":    {"localhost:" + port, "localhost resolves to "},
		"Mapped":  {"[::ffff:127.0.0.1]:" + port, "a loopback address" + refusal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := address.Guard{Refuse: true}.DialContext(t.Context(), "tcp", tc.address)
			var refused *address.RefusedError
			require.ErrorAs(t, err, &refused)
			assert.ErrorContains(t, err, tc.want)
			_, err = address.Guard{Refuse: true}.DialProxied(t.Context(), "tcp", tc.address)
			assert.ErrorAs(t, err, &refused)
		})
	}
}

func TestGuard_allowsEverythingByDefault(t *testing.T) {
	origin, host := server(t)
	resp, err := clientOf(address.Guard{}).Get(origin)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	conn, err := address.Guard{}.DialProxied(t.Context(), "tcp", host)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

// A server elsewhere must not lead there either: a redirect is another connection.
func TestGuard_refusesAtEveryConnection(t *testing.T) {
	origin, _ := server(t)
	redirects := httptest.NewServer(http.RedirectHandler(origin, http.StatusFound))
	t.Cleanup(redirects.Close)
	first := true
	guarded := address.Guard{Refuse: true}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, at string) (c net.Conn, err error) {
		if first {
			first = false // as if it were elsewhere
			return address.Guard{}.DialContext(ctx, network, at)
		}
		return guarded.DialContext(ctx, network, at)
	}}}
	_, err := client.Get(redirects.URL)
	require.ErrorContains(t, err, "127.0.0.1 is a loopback address"+refusal)
}

// The operator says where a proxy is. What it leads to is its business, but for what is plain to see.
func TestGuard_proxies(t *testing.T) {
	_, host := server(t)
	t.Setenv("HTTPS_PROXY", "http://"+host)
	guarded := address.Guard{Refuse: true}
	conn, err := guarded.DialContext(t.Context(), "tcp", host)
	require.NoError(t, err, "the proxy itself")
	require.NoError(t, conn.Close())
}

// Offline, nothing is connected to, a proxy neither, and no name is looked up.
func TestGuard_offline(t *testing.T) {
	origin, host := server(t)
	offline := address.Guard{Offline: true}
	for _, at := range []string{host, "no-such-host.invalid:443"} {
		_, err := offline.DialContext(t.Context(), "tcp", at)
		require.ErrorAs(t, err, new(*address.OfflineError))
		assert.EqualError(t, err, "offline: not connected to "+at)
	}
	_, err := clientOf(offline).Get(origin)
	require.ErrorAs(t, err, new(*address.OfflineError))
	t.Setenv("ALL_PROXY", "socks5://"+host)
	_, err = offline.DialProxied(t.Context(), "tcp", "no-such-host.invalid:443")
	require.ErrorAs(t, err, new(*address.OfflineError))
}
