package cluster_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/cluster"
)

// C38: a controller that needs a cluster gets the reason why it cannot have it, and is notified when that changes.
func TestRegistry_withheldSaysWhy(t *testing.T) {
	r := cluster.NewRegistry(nil, cluster.Options{})
	t.Cleanup(r.Close)
	told := 0
	r.Subscribe(func(types.NamespacedName, bool) { told++ })
	says := func(want string) {
		t.Helper()
		_, err := r.Get(one)
		require.ErrorIs(t, err, cluster.ErrNotEngaged)
		assert.EqualError(t, err, want)
	}
	says("cluster team-a/one is not connected: no KubernetesCluster that this process serves has that name")

	r.Withhold(one, errors.New("Secret team-a/kubeconfig does not exist"))
	says("cluster team-a/one is not connected: Secret team-a/kubeconfig does not exist")
	assert.Equal(t, 1, told)
	r.Withhold(one, errors.New("Secret team-a/kubeconfig does not exist"))
	assert.Equal(t, 1, told, "nothing is new")
	r.Withhold(one, errors.New("it is paused"))
	says("cluster team-a/one is not connected: it is paused")
	assert.Equal(t, 2, told)

	r.Ensure(one, "a", &rest.Config{Host: "https://127.0.0.1:1"})
	_, err := r.Get(one)
	assert.NotContains(t, err.Error(), "paused")
	r.Withhold(one, errors.New("it is paused"))
	r.Remove(one)
	says("cluster team-a/one is not connected: no KubernetesCluster that this process serves has that name")
}
