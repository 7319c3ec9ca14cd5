package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }

func TestRun_refusesWhatCannotWork(t *testing.T) {
	dir := t.TempDir()
	kubeconfig, keys := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "keys")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`), 0o600))
	require.NoError(t, os.WriteFile(keys, []byte("short"), 0o600))
	const url, issuer, client = "--url=https://waybill.example.com", "--oidc-issuer-url=https://id.example.com", "--oidc-client-id=waybill"
	for reason, tc := range map[string]struct {
		args []string
		says string
	}{
		"unknown flag":                 {[]string{"--nope"}, "unknown flag: --nope"},
		"an argument":                  {[]string{"now"}, `unexpected argument "now"`},
		"browsers need an address":     {nil, "give --url"},
		"cookies are for https":        {[]string{"--url=http://waybill.example.com"}, "no other scheme"},
		"and for a whole host":         {[]string{"--url=https://example.com/waybill"}, "no path"},
		"no source of identities":      {[]string{url}, "--oidc-issuer-url, or --requestheader-client-ca-file"},
		"two say who people are":       {[]string{url, issuer, client, "--requestheader-client-ca-file=" + keys}, "not both"},
		"a provider without TLS":       {[]string{url, "--oidc-issuer-url=http://id.example.com"}, "not an https address"},
		"no client":                    {[]string{url, issuer}, "--oidc-client-id"},
		"no keys":                      {[]string{url, issuer, client}, "--session-key-file"},
		"no name":                      {[]string{url, issuer, client, "--oidc-username-claim="}, "--oidc-username-claim"},
		"no room for sources":          {[]string{url, issuer, client, "--session-key-file=" + keys, "--cache-size=0"}, "--cache-size must be positive"},
		"sessions that end at once":    {[]string{url, issuer, client, "--session-key-file=" + keys, "--session-duration=1s"}, "--session-duration"},
		"half a certificate":           {[]string{url, issuer, client, "--session-key-file=" + keys, "--tls-cert-file=x"}, "need one another"},
		"no such kubeconfig":           {[]string{url, issuer, client, "--session-key-file=" + keys, "--kubeconfig=/does/not/exist"}, "stat /does/not/exist"},
		"keys that can be guessed":     {[]string{url, issuer, client, "--session-key-file=" + keys, "--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0"}, "less than 32 characters"},
		"a proxy without an authority": {[]string{url, "--requestheader-client-ca-file=" + keys, "--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0"}, "authority of the proxy"},
	} {
		assert.ErrorContains(t, run(t.Context(), tc.args), tc.says, reason)
	}
}

func TestParse_defaults(t *testing.T) {
	o, err := parse([]string{"--url=https://waybill.example.com", "--oidc-issuer-url=https://id.example.com", "--oidc-client-id=waybill", "--session-key-file=keys"})
	require.NoError(t, err)
	d := o.dashboard()
	assert.Nil(t, d.Proxy)
	assert.Equal(t, 8*time.Hour, d.SessionDuration)
	assert.Equal(t, "sub", d.OIDC.UsernameClaim)
	assert.Equal(t, int64(2<<30), d.CacheSize)
	assert.NotEmpty(t, d.CacheDir, "the home of the image's user cannot be written")
	assert.Empty(t, d.KubeconfigNamespace, "it does not impersonate users in user clusters unless it is told to")
}
