package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	env.Main(m)
}

const (
	limit = env.Limit
	often = 5 * time.Millisecond
)

var (
	one = types.NamespacedName{Namespace: "team-a", Name: "one"}
	two = types.NamespacedName{Namespace: "team-a", Name: "two"}
)

// hub is the cluster that registries of all tests are local to; user is any other.
func hub(t testing.TB) *env.Cluster {
	return env.Shared(t, env.Options{Name: "hub", NoControllers: true, CRDs: []string{"../../charts/waybill/crds"}, Audit: true})
}

func user(t testing.TB) *env.Cluster {
	return env.Shared(t, env.Options{Name: "user", NoControllers: true, CRDs: []string{"../../charts/waybill/crds"}, Audit: true})
}

// fast has the registry find out in milliseconds what takes seconds otherwise, but for a
// server that hangs: a machine that does much else looks like one.
func fast() cluster.Options {
	return cluster.Options{
		ProbeInterval: 200 * time.Millisecond,
		ProbeTimeout:  30 * time.Second,
		Patience:      30 * time.Second,
		RetryAfter:    20 * time.Millisecond,
	}
}

// hasty is fast for servers that hang.
func hasty() cluster.Options {
	o := fast()
	o.ProbeTimeout, o.Patience = 400*time.Millisecond, 100*time.Millisecond
	return o
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return scheme
}

// newLocal returns the hub as the local cluster, with a cache that runs until the test ends.
func newLocal(t testing.TB) *cluster.Cluster {
	t.Helper()
	config, scheme := hub(t).RESTConfig(), newScheme(t)
	own, err := cache.New(config, cache.Options{Scheme: scheme})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- own.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	local, err := cluster.NewLocal(ctx, config, own, scheme)
	require.NoError(t, err)
	return local
}

func newRegistry(t testing.TB, o cluster.Options) *cluster.Registry {
	t.Helper()
	r := cluster.NewRegistry(newLocal(t), o)
	t.Cleanup(r.Close)
	return r
}

// gated is the configuration of a cluster behind a gate of the test's own.
func gated(t testing.TB, c *env.Cluster) (*env.Gate, *rest.Config) {
	t.Helper()
	gate, err := env.NewGate(c.Address())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	return gate, env.Via(gate, c.RESTConfig())
}

// engaged waits until the registry hands the cluster out.
func engaged(t testing.TB, r *cluster.Registry, key types.NamespacedName) *cluster.Cluster {
	t.Helper()
	var c *cluster.Cluster
	require.Eventually(t, func() bool {
		found, err := r.Get(key)
		c = found
		return err == nil
	}, limit, often, "cluster %s is engaged", key)
	return c
}

// lost waits until the registry knows that the cluster does not answer.
func lost(t testing.TB, r *cluster.Registry, key types.NamespacedName) error {
	t.Helper()
	var got error
	require.Eventually(t, func() bool {
		_, got = r.Get(key)
		return isUnreachable(got)
	}, limit, often, "cluster %s is lost", key)
	return got
}
