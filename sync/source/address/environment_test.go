package address_test

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/address"
)

// inProcessWith runs the test in a process of its own with these variables, because a process reads once which
// proxies its environment names. It returns whether this is that process.
func inProcessWith(t *testing.T, variables ...string) bool {
	t.Helper()
	const marker = "WAYBILL_TEST_PROXIES"
	if os.Getenv(marker) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), marker+"=here", "NO_PROXY=", "no_proxy="), variables...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// A proxy is not asked for what is plain to see that sources may not be there, and for everything else it is.
func TestGuard_checksWhatIsBehindAProxy(t *testing.T) {
	const by = "http://proxy.example.com:3128"
	if !inProcessWith(t, "HTTP_PROXY="+by, "http_proxy="+by) {
		return
	}
	cases := map[string]struct {
		reason  string
		guard   address.Guard
		host    string
		refused bool
	}{
		"metadata":  {"it is an address of the cloud provider's metadata", address.Guard{Refuse: true}, "169.254.169.254", true},
		"elsewhere": {"the proxy resolves the name", address.Guard{Refuse: true}, "git.example.com", false},
		"allowed":   {"everything is allowed", address.Guard{}, "169.254.169.254", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.guard.Proxy(&http.Request{URL: &url.URL{Scheme: "http", Host: tc.host}})
			if tc.refused {
				require.ErrorAs(t, err, new(*address.RefusedError), tc.reason)
				return
			}
			require.NoError(t, err, tc.reason)
			require.NotNil(t, got, tc.reason)
			assert.Equal(t, by, got.String(), tc.reason)
		})
	}
}

// As TestGuard_checksWhatIsBehindAProxy, for what is no HTTP.
func TestGuard_checksWhatIsDialedByAProxy(t *testing.T) {
	const by = "socks5://127.0.0.1:1"
	if !inProcessWith(t, "ALL_PROXY="+by, "all_proxy="+by) {
		return
	}
	_, err := address.Guard{Refuse: true}.DialProxied(t.Context(), "tcp", "169.254.169.254:22")
	require.ErrorAs(t, err, new(*address.RefusedError))
	_, err = address.Guard{Refuse: true}.DialProxied(t.Context(), "tcp", "git.example.com")
	require.ErrorContains(t, err, "missing port in address")
	_, err = address.Guard{Refuse: true}.DialProxied(t.Context(), "tcp", "git.example.com:22")
	require.ErrorContains(t, err, "127.0.0.1:1", "the proxy is asked, wherever the operator has it")
	require.NotErrorAs(t, err, new(*address.RefusedError))
}
