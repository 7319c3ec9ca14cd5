package cluster

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// What was exchanged is not kept: it may still be valid, and a user may have good reason to replace
// it.
func TestLink_forgetsOldCredentials(t *testing.T) {
	answers := map[string]string{
		"/readyz":                        "ok",
		"/version":                       `{"gitVersion":"v1.36.4"}`,
		"/api/v1/namespaces/kube-system": `{"metadata":{"uid":"u"}}`,
		selfPath:                         `{"status":{"userInfo":{"username":"hub"}}}`,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(answers[r.URL.Path]))
	}))
	t.Cleanup(server.Close)
	with := func(token string) *rest.Config {
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		return &rest.Config{Host: server.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	}
	l, err := newLink(with("old"), Options{Patience: time.Minute, limits: defaultLimits(), underWay: newUnderWay(), kept: newKept(1 << 40)}, func() {}, func(error) {})
	require.NoError(t, err)
	require.NoError(t, l.ready(t.Context()))
	old := weak.Make(l.base.current.Load())

	by := l.channel(with("new"))
	require.NotNil(t, by)
	require.EqualError(t, l.exchange(t.Context(), by, "another"), "they lead to another cluster")
	assert.NotSame(t, by, l.base.current.Load())
	require.NoError(t, l.exchange(t.Context(), by, "u"))
	assert.Same(t, by, l.base.current.Load())
	require.Eventually(t, func() bool {
		runtime.GC()
		return old.Value() == nil
	}, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, l.ready(t.Context()))
}

// Nothing but credentials is exchanged.
func TestLink_exchangesCredentialsAlone(t *testing.T) {
	plain := func() *rest.Config {
		return &rest.Config{Host: "https://prod.example.com", BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{ServerName: "prod"}}
	}
	cases := map[string]struct {
		change func(*rest.Config)
		want   bool
	}{
		"Token":         {func(c *rest.Config) { c.BearerToken = "new" }, true},
		"Password":      {func(c *rest.Config) { c.BearerToken, c.Username, c.Password = "", "u", "p" }, true},
		"Host":          {func(c *rest.Config) { c.Host = "https://test.example.com" }, false},
		"CA":            {func(c *rest.Config) { c.Insecure = true }, false},
		"ServerName":    {func(c *rest.Config) { c.ServerName = "test" }, false},
		"Proxy":         {func(c *rest.Config) { c.Proxy = http.ProxyFromEnvironment }, false},
		"Impersonation": {func(c *rest.Config) { c.Impersonate.UserName = "root" }, false},
		"TokenFile":     {func(c *rest.Config) { c.BearerTokenFile = "/token" }, false},
		"Both":          {func(c *rest.Config) { c.Username, c.Password = "u", "p" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := newLink(plain(), Options{Patience: time.Minute, limits: defaultLimits(), underWay: newUnderWay(), kept: newKept(1 << 40)}, func() {}, func(error) {})
			require.NoError(t, err)
			other := plain()
			tc.change(other)
			assert.Equal(t, tc.want, l.channel(other) != nil)
		})
	}
}
