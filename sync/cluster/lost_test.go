package cluster_test

import (
	"context"
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
	r := newRegistry(t, fast())
	var changes atomic.Int32
	r.Subscribe(func(_ types.NamespacedName, reachable bool) {
		assert.False(t, reachable)
		changes.Add(1)
	})
	r.Ensure(one, "a", config)
	assert.EqualError(t, lost(t, r, one), "cluster team-a/one is unreachable: connection refused")
	state, _ := r.State(one)
	assert.True(t, state.LastSeen.IsZero(), "never seen")
	assert.True(t, state.Contacted)
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
			r := newRegistry(t, fast())
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

	name := createDefinition(t, user(t).RESTConfig())
	require.NoError(t, gate.Open())
	back := time.Now()
	require.Eventually(t, func() bool { return seen.has(name) }, limit, often)
	assert.Less(t, time.Since(back), 10*time.Second, "informers do not wait for a back-off of their own")
	assert.NoError(t, c.Context().Err())
	assert.NoError(t, c.Reachable())
	assert.EqualValues(t, 1, hooked.Load())
}

// A server that accepts and never answers is found out by the requests that wait for it,
// and those wait no longer than that.
func TestRegistry_hanging(t *testing.T) {
	gate, config := gated(t, user(t))
	o := fast()
	o.ProbeInterval = time.Hour // the requests alone have to find out
	r := newRegistry(t, o)
	r.Ensure(one, "a", config)
	c := engaged(t, r, one)
	require.NoError(t, c.Client().List(t.Context(), &corev1.NamespaceList{}))

	require.NoError(t, gate.Hang())
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	err := c.Client().List(ctx, &corev1.NamespaceList{})
	require.ErrorIs(t, err, cluster.ErrUnreachable)
	assert.Contains(t, err.Error(), "cluster team-a/one is unreachable: it does not answer in time")
	assert.Less(t, time.Since(began), 20*time.Second, "patience and one probe, rather than the time limit of a request")

	require.NoError(t, gate.Open())
	r.Probe(one)
	engaged(t, r, one)
	require.NoError(t, c.Client().List(t.Context(), &corev1.NamespaceList{}))
}

// One dead cluster adds nothing to the time of the others.
func TestRegistry_deadClusterHoldsUpNobody(t *testing.T) {
	gate, config := gated(t, user(t))
	require.NoError(t, gate.Hang())
	o := fast()
	o.ProbeTimeout = time.Minute
	r := newRegistry(t, o)
	for i := range 20 {
		r.Ensure(types.NamespacedName{Namespace: "dead", Name: string(rune('a' + i))}, "a", config)
	}
	r.Ensure(two, "a", user(t).RESTConfig())
	began := time.Now()
	engaged(t, r, two)
	assert.Less(t, time.Since(began), o.ProbeTimeout/2, "less than one probe of a dead one takes")
}

// A slow answer, and an answer that says no, are answers.
func TestRegistry_slowAndRefusingIsNotDead(t *testing.T) {
	gate, config := gated(t, user(t))
	o := fast()
	o.ProbeTimeout = 10 * time.Second
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
