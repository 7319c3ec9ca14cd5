package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/test/env"
)

// C45: a cluster that is refused is not engaged, and not any more if it was; and it is as soon as it
// may be.
func TestRegistry_guardRefusesACluster(t *testing.T) {
	r := newRegistry(t, fast())
	var mu sync.Mutex
	var verdict error
	set := func(err error) {
		mu.Lock()
		verdict = err
		mu.Unlock()
		r.Probe(one)
	}
	r.Guard(func(types.NamespacedName, string) error {
		mu.Lock()
		defer mu.Unlock()
		return verdict
	})
	driven := make(chan *cluster.Cluster, 10)
	r.OnEngage(func(_ context.Context, c *cluster.Cluster) error {
		driven <- c
		return nil
	})
	refused := func() {
		t.Helper()
		require.Eventually(t, func() bool {
			state, _ := r.State(one)
			return errors.Is(state.Err, cluster.ErrRefused) && !state.Engaged && state.Reachable && state.Yields == nil && state.UID != ""
		}, limit, often)
		_, err := r.Get(one)
		require.EqualError(t, err, "cluster team-a/one is not connected: it leads elsewhere: refused")
		require.ErrorIs(t, err, cluster.ErrNotEngaged)
	}
	no := fmt.Errorf("it leads elsewhere: %w", cluster.ErrRefused)
	set(no)
	r.Ensure(one, "a", user(t).RESTConfig())
	refused()
	assert.Empty(t, driven)

	set(nil)
	c := env.Receive(t, driven, "it is not driven")
	set(no)
	env.Receive(t, c.Context().Done(), "the cluster is still engaged")
	refused()
	set(errors.New("another comes first"))
	engaged(t, r, one)
	assert.Empty(t, driven)
}
