package chart_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/address"
	"waybill.dev/waybill/sync/source/chart"
)

// A user who writes a URL reaches nothing that answers only this machine.
func TestGet_refusesLocalServers(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	authority := chart.Credentials{InsecureSkipTLS: true} // which has a transport of its own
	cases := map[string]struct {
		ref  chart.Reference
		cred chart.Credentials
	}{
		"Repository":         {chart.Reference{URL: server.URL, Name: "web", Version: "1.2.3"}, chart.Credentials{}},
		"RepositoryWithTLS":  {chart.Reference{URL: "https://" + host, Name: "web", Version: "1.2.3"}, authority},
		"Registry":           {chart.Reference{URL: "oci://" + host + "/team", Name: "web", Version: "1.2.3"}, chart.Credentials{PlainHTTP: true}},
		"RegistryByLocalDNS": {chart.Reference{URL: strings.Replace(server.URL, "127.0.0.1", "localhost", 1), Name: "web", Version: "1.2.3"}, chart.Credentials{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newCache(t, chart.WithGuard(address.Guard{Refuse: true})).Get(t.Context(), tc.ref, tc.cred)
			require.ErrorIs(t, err, chart.ErrUnreachable, "what a name resolves to may change")
			assert.ErrorContains(t, err, "a loopback address: sources may not be there unless waybill-sync runs with --allow-local-sources")
			assert.Zero(t, asked)
		})
	}
	_, err := newCache(t).Get(t.Context(), cases["Repository"].ref, chart.Credentials{})
	require.ErrorIs(t, err, chart.ErrNotFound)
	assert.NotZero(t, asked)
}
