package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/cmd/internal/fleet"
)

// K69: flags that kubectl has mean the same in a user cluster, or are refused there.
func TestUserCluster_flags(t *testing.T) {
	hubCluster, userCluster := hub(t), user(t)
	namespace := hubCluster.Namespace(t)
	engage(t, clientOf(t, hubCluster), namespace, "berlin", userCluster.Kubeconfig())

	for _, flag := range [][]string{{"--as", "jane"}, {"--as", "jane", "--as-group", "system:masters"}} {
		got := waybill(t, hubCluster, append([]string{"get", "installations", "--cluster", namespace + "/berlin"}, flag...)...)
		assert.Equal(t, 2, got.code, got.out)
		assert.Contains(t, got.errOut, "--as and --as-group are for the cluster of the kubeconfig")
	}

	for given, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 3 * time.Minute: 3 * time.Minute} {
		config := hubCluster.RESTConfig()
		config.Timeout = given
		berlin, err := fleet.NewHub("hub", config).UserCluster(t.Context(), types.NamespacedName{Namespace: namespace, Name: "berlin"})
		require.NoError(t, err)
		there, _, err := berlin.REST()
		require.NoError(t, err)
		assert.Equal(t, want, there.Timeout, "--request-timeout=%s", given)
	}
}
