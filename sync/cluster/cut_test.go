package cluster_test

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/test/env"
)

// balanced is the configuration of a cluster behind a load balancer, which cuts all connections
// while a probe is under way, as often as cuts says. It counts probes.
func balanced(t *testing.T, c *env.Cluster, cuts *atomic.Int32) (config *rest.Config, probes *atomic.Int32) {
	t.Helper()
	probes = &atomic.Int32{}
	config = behind(t, c, func(balancer *httptest.Server, _ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/readyz" {
			return false
		}
		probes.Add(1)
		if cuts.Add(-1) >= 0 {
			balancer.CloseClientConnections()
			return true
		}
		return false
	})
	return config, probes
}

// connection is the key of the number of a connection, from 1, in the context of its requests.
type connection struct{}

// behind is the configuration of a cluster behind a load balancer, which passes on what it does not
// answer itself.
func behind(t *testing.T, c *env.Cluster, answers func(*httptest.Server, http.ResponseWriter, *http.Request) bool) *rest.Config {
	t.Helper()
	return before(t, c.RESTConfig(), answers)
}

// before is like behind, for a load balancer that connects as config says.
func before(t *testing.T, config *rest.Config, answers func(*httptest.Server, http.ResponseWriter, *http.Request) bool) *rest.Config {
	t.Helper()
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1 // events of a watch are passed on at once
	proxy.Transport, err = rest.TransportFor(config)
	require.NoError(t, err)
	var balancer *httptest.Server
	balancer = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answers(balancer, w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	var connections atomic.Int32
	balancer.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, connections.Add(1))
	}
	balancer.EnableHTTP2 = true
	balancer.StartTLS()
	t.Cleanup(balancer.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: balancer.Certificate().Raw})
	return &rest.Config{Host: balancer.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

// An API server that ends in good order says so for a while, and serves on: the others behind the
// balancer are the cluster by then, and what it still serves comes to its end.
func TestRegistry_serverThatEndsIsNoLostCluster(t *testing.T) {
	var ending, last, told, lost, elsewhere atomic.Int32
	config := behind(t, user(t), func(_ *httptest.Server, w http.ResponseWriter, r *http.Request) bool {
		number := r.Context().Value(connection{}).(int32)
		if r.URL.Path != "/readyz" {
			return false
		}
		last.Store(number)
		if number > ending.Load() {
			elsewhere.Add(1)
			return false
		}
		told.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	r := newRegistry(t, fast())
	r.Ensure(one, "a", config)
	c := engaged(t, r, one)
	watched, err := c.Metadata().Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(watched.Stop)
	r.Subscribe(func(_ types.NamespacedName, reachable bool) {
		if !reachable {
			lost.Add(1)
		}
	})
	ending.Store(last.Load())
	before := elsewhere.Load()
	require.Eventually(t, func() bool { return elsewhere.Load() > before+5 }, limit, often)
	assert.Positive(t, told.Load())
	assert.Zero(t, lost.Load())
	created := user(t).Namespace(t)
	for event := range watched.ResultChan() {
		require.NotEqual(t, apiwatch.Error, event.Type)
		if event.Object.(metav1.Object).GetName() == created {
			return
		}
	}
	t.Error("the watch was cut")
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
