package cluster_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/test/env"
)

// A watch that outlives the restore of etcd would go on at a version of the future and show nothing,
// and what is remembered by resource version is void. A restart of the API server alone is neither.
func TestRegistry_engagesARestoredClusterAnew(t *testing.T) {
	user := env.Start(t, env.Options{Name: "restored", NoControllers: true, Own: true, CRDs: []string{"../../charts/waybill/crds"}})
	r := newRegistry(t, fast())
	var hooked atomic.Int32
	r.OnEngage(func(context.Context, *cluster.Cluster) error {
		hooked.Add(1)
		return nil
	})
	r.Ensure(one, "a", user.RESTConfig())
	before := engaged(t, r, one)
	seen := watchDefinitions(t, before)
	var lost string
	require.NoError(t, user.Rewind(t.Context(), func() {
		lost = createDefinition(t, user.RESTConfig())
		require.Eventually(t, func() bool { return seen.has(lost) }, limit, often, "the watch goes on where the API server was only started again")
		assert.NoError(t, before.Context().Err())
		assert.EqualValues(t, 1, hooked.Load())
	}))

	var after *cluster.Cluster
	require.Eventually(t, func() bool {
		found, err := r.Get(one)
		after = found
		return err == nil && found != before
	}, limit, often, "it goes on with what it has seen")
	require.Error(t, before.Context().Err())
	require.Eventually(t, func() bool { return hooked.Load() == 2 }, limit, often)
	seen = watchDefinitions(t, after)
	assert.False(t, seen.has(lost), "it is not there any more")
	known := &v1alpha1.ApplicationDefinitionList{}
	require.NoError(t, after.Client().List(t.Context(), known))
	for _, definition := range known.Items {
		assert.NotEqual(t, lost, definition.Name)
	}
	name := createDefinition(t, user.RESTConfig())
	require.Eventually(t, func() bool { return seen.has(name) }, limit, often, "and changes are heard of")
}
