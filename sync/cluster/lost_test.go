package cluster_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/test/env"
)

// A user cluster that is down from the start.
func TestRegistry_downFromTheStart(t *testing.T) {
	gate, config := gated(t, user(t))
	gate.Shut()
	var tries, changes atomic.Int32
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		tries.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	r := newRegistry(t, fast())
	r.Subscribe(func(_ types.NamespacedName, reachable bool) {
		assert.False(t, reachable)
		changes.Add(1)
	})
	r.Ensure(one, "a", config)
	assert.EqualError(t, lost(t, r, one), "cluster team-a/one is unreachable: connection refused")
	state, _ := r.State(one)
	assert.True(t, state.LastSeen.IsZero(), "never seen")
	assert.True(t, state.Contacted)
	require.Eventually(t, func() bool { return tries.Load() > 3 }, limit, often)
	assert.EqualValues(t, 1, changes.Load(), "tries that end the same are no news")
}

func TestRegistry_engagesWhatComesUpLater(t *testing.T) {
	cases := map[string]func(*env.Gate) error{
		"Refusing": func(g *env.Gate) error { g.Shut(); return nil },
		"Hanging":  (*env.Gate).Hang,
	}
	for name, block := range cases {
		t.Run(name, func(t *testing.T) {
			gate, config := gated(t, user(t))
			require.NoError(t, block(gate))
			r := newRegistry(t, hasty())
			r.Ensure(one, "a", config)
			require.Error(t, lost(t, r, one))
			require.NoError(t, gate.Open())
			engaged(t, r, one)
		})
	}
}

// A user cluster dies in the middle and comes back: what watches it goes on at once, and
// nothing is engaged anew.
func TestRegistry_diesAndComesBack(t *testing.T) {
	gate, config := gated(t, user(t))
	r := newRegistry(t, fast())
	var hooked atomic.Int32
	r.OnEngage(func(context.Context, *cluster.Cluster) error {
		hooked.Add(1)
		return nil
	})
	r.Ensure(one, "a", config)
	c := engaged(t, r, one)
	seen := watchDefinitions(t, c)

	gate.Shut()
	err := lost(t, r, one)
	assert.EqualError(t, err, "cluster team-a/one is unreachable: connection refused")
	var unreachable *cluster.UnreachableError
	require.ErrorAs(t, err, &unreachable)
	assert.WithinDuration(t, time.Now(), unreachable.LastSeen, limit)
	require.ErrorIs(t, c.Reachable(), cluster.ErrUnreachable)
	require.ErrorIs(t, c.Client().List(t.Context(), &corev1.NamespaceList{}), cluster.ErrUnreachable, "requests fail at once")
	require.NoError(t, c.Client().List(t.Context(), &v1alpha1.ApplicationDefinitionList{}), "what is known is still known")
	watching := make(chan error, 1)
	go func() { watching <- watchNamespaces(t.Context(), c) }()

	name := createDefinition(t, user(t).RESTConfig())
	assert.Empty(t, watching, "a watch does not fail but waits: informers have no back-off of their own to wait for")
	require.NoError(t, gate.Open())
	require.NoError(t, <-watching)
	require.Eventually(t, func() bool { return seen.has(name) }, limit, often)
	assert.NoError(t, c.Context().Err())
	assert.NoError(t, c.Reachable())
	assert.EqualValues(t, 1, hooked.Load())
}

// A server that accepts and never answers is found out by the requests that wait for it,
// and those wait no longer than that.
func TestRegistry_hanging(t *testing.T) {
	gate, config := gated(t, user(t))
	o := hasty()
	o.ProbeInterval = time.Hour // the requests alone have to find out
	r := newRegistry(t, o)
	r.Ensure(one, "a", config)
	c := engaged(t, r, one)
	answered := func() bool {
		r.Probe(one) // on a machine that does much else, it may look as if it hung
		return c.Client().List(t.Context(), &corev1.NamespaceList{}) == nil
	}
	require.Eventually(t, answered, limit, often)

	require.NoError(t, gate.Hang())
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	err := c.Client().List(ctx, &corev1.NamespaceList{})
	require.ErrorIs(t, err, cluster.ErrUnreachable)
	assert.Contains(t, err.Error(), "cluster team-a/one is unreachable: it does not answer in time")
	assert.Less(t, time.Since(began), time.Minute, "patience and one probe, rather than the 90 s that a request may take")

	require.NoError(t, gate.Open())
	require.Eventually(t, answered, limit, often)
}

// One dead cluster adds nothing to the time of the others.
func TestRegistry_deadClusterHoldsUpNobody(t *testing.T) {
	gate, config := gated(t, user(t))
	require.NoError(t, gate.Hang())
	o := fast()
	o.ProbeTimeout = time.Hour // a caller that is held up by one of them is so for good
	r := newRegistry(t, o)
	for i := range 20 {
		r.Ensure(types.NamespacedName{Namespace: "dead", Name: string(rune('a' + i))}, "a", config)
	}
	r.Ensure(two, "a", user(t).RESTConfig())
	engaged(t, r, two)
}

// A slow answer, and an answer that says no, are answers.
func TestRegistry_slowAndRefusingIsNotDead(t *testing.T) {
	gate, config := gated(t, user(t))
	o := fast()
	o.Patience = 100 * time.Millisecond
	r := newRegistry(t, o)
	var lost atomic.Bool
	r.Subscribe(func(_ types.NamespacedName, reachable bool) { lost.Store(!reachable) })
	r.Ensure(one, "a", config)
	c := engaged(t, r, one)

	gate.Slow(3 * o.Patience)
	require.NoError(t, c.Client().List(t.Context(), &corev1.NamespaceList{}))
	gate.Slow(0)
	nobody, err := c.As("nobody")
	require.NoError(t, err)
	for range 20 {
		require.Error(t, nobody.Client().List(t.Context(), &corev1.SecretList{}))
	}
	missing := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "missing"}}
	require.Error(t, c.Client().Get(t.Context(), client.ObjectKeyFromObject(missing), missing))
	assert.NoError(t, c.Reachable())
	assert.False(t, lost.Load())
}

// A kubeconfig that leads to a server with another certificate.
func TestRegistry_untrustedServer(t *testing.T) {
	config := user(t).RESTConfig()
	config.CAData = hub(t).RESTConfig().CAData
	r := newRegistry(t, fast())
	r.Ensure(one, "a", config)
	assert.EqualError(t, lost(t, r, one),
		"cluster team-a/one is unreachable: its certificate is not signed by the certificate authority of the kubeconfig")
}

// A worker that reads through an informer which never had an answer is not held up.
func TestClient_readDoesNotWaitForALostCluster(t *testing.T) {
	gate, config := gated(t, user(t))
	r := newRegistry(t, fast())
	r.Ensure(one, "a", config)
	c := engaged(t, r, one)
	gate.Shut()
	require.Error(t, lost(t, r, one))
	require.ErrorIs(t, c.Client().List(t.Context(), &v1alpha1.ApplicationInstallationList{}), cluster.ErrUnreachable)
}

// watchNamespaces returns when a watch has begun, or why it has not.
func watchNamespaces(ctx context.Context, c *cluster.Cluster) error {
	w, err := c.Metadata().Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Watch(ctx, metav1.ListOptions{})
	if err == nil {
		w.Stop()
	}
	return err
}

// watchDefinitions starts an informer on the ApplicationDefinitions of a cluster.
func watchDefinitions(t *testing.T, c *cluster.Cluster) *names {
	t.Helper()
	informer, err := c.Cache().GetInformer(t.Context(), &v1alpha1.ApplicationDefinition{}, cache.BlockUntilSynced(false))
	require.NoError(t, err)
	seen := &names{}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		seen.add(o.(client.Object).GetName())
	}})
	require.NoError(t, err)
	require.Eventually(t, informer.HasSynced, limit, often)
	return seen
}
