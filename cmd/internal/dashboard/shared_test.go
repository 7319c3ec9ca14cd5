package dashboard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"waybill.dev/waybill/test/env"
)

// shared is a dashboard that runs in a hub.
type shared struct {
	t         testing.TB
	address   string
	server    *server
	provider  *env.IdentityProvider
	clock     *clocktesting.FakePassiveClock
	authority *x509.CertPool
}

// account is a user of the API server with the rights that the dashboard has.
func account(t testing.TB, api *env.Cluster) *rest.Config {
	t.Helper()
	const name = "waybill-dashboard"
	config, err := api.AddUser(name)
	require.NoError(t, err)
	allow(t, api, "", name, mayRead, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users", "groups"}, Verbs: []string{"impersonate"}})
	return config
}

// write returns the name of a file with that content.
func write(t testing.TB, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, content, 0o600))
	return name
}

// openShared starts a dashboard with the account's rights, at which people sign in with a provider of its own.
func openShared(t testing.TB, config *rest.Config, change ...func(*Options)) *shared {
	t.Helper()
	p, err := env.StartIdentityProvider()
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	ca, err := env.CA()
	require.NoError(t, err)
	o := Options{
		OIDC: &OIDC{
			IssuerURL: p.URL(), ClientID: env.IdentityClientID, ClientSecretFile: write(t, []byte(env.IdentityClientSecret+"\n")), UsernameClaim: "sub", UsernamePrefix: "-", GroupsClaim: "groups",
			CAFile: write(t, ca),
		},
		SessionKeyFile: write(t, []byte(strings.Repeat("k", 40))), SessionDuration: time.Hour, HubName: "hub",
	}
	s := startShared(t, config, &o, change...)
	s.provider = p
	require.True(t, s.authority.AppendCertsFromPEM(ca))
	return s
}

// startShared starts a dashboard, which has read what there is when it returns. Streams are fast, and time is the test's.
func startShared(t testing.TB, config *rest.Config, o *Options, change ...func(*Options)) *shared {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	o.URL, o.CertFile, o.KeyFile = "https://"+listener.Addr().String(), write(t, certificate), write(t, key)
	for _, f := range change {
		f(o)
	}
	require.NoError(t, o.Check())
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s, beside, err := newShared(ctx, config, *o)
	require.NoError(t, err)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	switch by := s.door.(type) {
	case *oidcDoor:
		by.now, by.viewers.now = clock.Now, clock.Now
	case *proxyDoor:
		by.viewers.now = clock.Now
	}
	s.pace.review, s.pace.gather = 50*time.Millisecond, 10*time.Millisecond
	secure, watching, err := o.tls()
	require.NoError(t, err)
	ended := make(chan error, 4)
	go func() { ended <- s.inventory.run(ctx) }()
	go func() { ended <- s.serve(listener, secure) }()
	for _, run := range []manager.RunnableFunc{beside, watching} {
		go func() {
			if run == nil {
				ended <- nil
				return
			}
			ended <- run(ctx)
		}()
	}
	t.Cleanup(func() {
		cancel()
		for range cap(ended) {
			require.NoError(t, <-ended)
		}
	})
	for _, f := range s.inventory.all() {
		require.Eventually(t, func() bool { return f.informer.HasSynced() || f.stands().State == forbidden }, limit, often, f.kind)
	}
	authority := x509.NewCertPool()
	require.True(t, authority.AppendCertsFromPEM(certificate))
	return &shared{t: t, address: o.URL, server: s, clock: clock, authority: authority}
}

// browser returns one without a session.
func (s *shared) browser(certificates ...tls.Certificate) *browser {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(s.t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.authority, Certificates: certificates}, ForceAttemptHTTP2: true}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &browser{Client: &http.Client{Jar: jar, Transport: transport}, t: s.t, address: s.address, server: s.server}
}

// signIn returns a browser of a user of that name and groups.
func (s *shared) signIn(name string, groups ...string) *browser {
	s.t.Helper()
	s.provider.As(map[string]any{"sub": name, "groups": groups})
	b := s.browser()
	got := b.page("/search")
	require.Equal(s.t, http.StatusOK, got.status, got.body)
	return b
}

// page opens a page as a person does: it is followed wherever it leads.
func (b *browser) page(path string, change ...func(*http.Request)) answer {
	b.t.Helper()
	return b.get(path, append([]func(*http.Request){func(r *http.Request) { r.Header.Set("Accept", "text/html") }}, change...)...)
}

// cookie returns the session that a browser holds; empty if none.
func (b *browser) cookie() string {
	b.t.Helper()
	address, err := url.Parse(b.address)
	require.NoError(b.t, err)
	for _, c := range b.Jar.Cookies(address) {
		if c.Name == sessionCookie {
			return c.Value
		}
	}
	return ""
}
