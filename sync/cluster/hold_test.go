package cluster_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/test/env"
)

// Work that is cancelled because its cluster is left can still record there how it ended, and is
// not met by what begins with the next credentials (P9, C38).
func TestCluster_Hold_keepsTheConnections(t *testing.T) {
	another, err := user(t).AddUser("another", "system:masters")
	require.NoError(t, err)
	for name, leave := range map[string]func(*cluster.Registry){
		"Removed":         func(r *cluster.Registry) { r.Remove(one) },
		"Replaced":        func(r *cluster.Registry) { r.Ensure(one, "b", another) },
		"RemovedAndBack":  func(r *cluster.Registry) { r.Remove(one); r.Ensure(one, "b", another) },
		"ReplacedAndLost": func(r *cluster.Registry) { r.Ensure(one, "b", another); r.Remove(one) },
		"EndOfTheProcess": func(r *cluster.Registry) { go r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, fast())
			driven := make(chan *cluster.Cluster, 2)
			r.OnEngage(func(_ context.Context, c *cluster.Cluster) error {
				driven <- c
				return nil
			})
			r.Ensure(one, "a", user(t).RESTConfig())
			c := env.Receive(t, driven, "the cluster is not driven")
			release := c.Hold()
			defer release()
			leave(r)
			env.Receive(t, c.Context().Done(), "the context is not cancelled")
			require.NoError(t, c.Client().List(t.Context(), &corev1.NamespaceList{}))
			assert.Empty(t, driven, "with what is still at work there")

			release()
			release()
			require.Eventually(t, func() bool {
				return c.Client().List(t.Context(), &corev1.NamespaceList{}) != nil
			}, limit, often, "the connections are not needed any more")
			if name == "Replaced" || name == "RemovedAndBack" {
				assert.NotSame(t, c, env.Receive(t, driven, "the cluster is not driven again"))
			}
			c.Hold() // comes too late, and is not waited for
			r.Close()
		})
	}
}
