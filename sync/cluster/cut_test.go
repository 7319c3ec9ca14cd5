package cluster_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/test/env"
)

// balanced is the configuration of a cluster behind a load balancer, which cuts all connections
// while a probe is under way, as often as cuts says. It counts probes.
func balanced(t *testing.T, c *env.Cluster, cuts *atomic.Int32) (config *rest.Config, probes *atomic.Int32) {
	t.Helper()
	target, err := url.Parse(c.RESTConfig().Host)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, err = rest.TransportFor(c.RESTConfig())
	require.NoError(t, err)
	probes = &atomic.Int32{}
	var balancer *httptest.Server
	balancer = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			probes.Add(1)
			if cuts.Add(-1) >= 0 {
				balancer.CloseClientConnections()
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	balancer.EnableHTTP2 = true
	balancer.StartTLS()
	t.Cleanup(balancer.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: balancer.Certificate().Raw})
	return &rest.Config{Host: balancer.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}, probes
}

// A load balancer that gives up connections takes no cluster away.
func TestRegistry_lostConnectionIsNoLostCluster(t *testing.T) {
	var cuts, lost atomic.Int32
	config, probes := balanced(t, user(t), &cuts)
	r := newRegistry(t, fast())
	r.Ensure(one, "a", config)
	engaged(t, r, one)
	r.Subscribe(func(_ types.NamespacedName, reachable bool) {
		if !reachable {
			lost.Add(1)
		}
	})
	for range 3 {
		cuts.Store(1)
		before := probes.Load()
		require.Eventually(t, func() bool { return probes.Load() > before+2 }, limit, often)
	}
	assert.Zero(t, lost.Load())
}

// One that gives up all of them does.
func TestRegistry_connectionsThatDoNotLast(t *testing.T) {
	var cuts atomic.Int32
	config, _ := balanced(t, user(t), &cuts)
	r := newRegistry(t, fast())
	r.Ensure(one, "a", config)
	engaged(t, r, one)
	cuts.Store(1 << 30)
	require.EqualError(t, lost(t, r, one), "cluster team-a/one is unreachable: the connection was closed")
	cuts.Store(0)
	engaged(t, r, one)
}
