package cluster_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
)

func hubClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(hub(t).RESTConfig(), client.Options{Scheme: newScheme(t)})
	require.NoError(t, err)
	return c
}

// C40
func TestEnsureHubID_isMadeOnce(t *testing.T) {
	c, ns := hubClient(t), hub(t).Namespace(t)
	ids := make([]string, 8)
	var starts sync.WaitGroup
	for i := range ids {
		starts.Go(func() {
			id, err := cluster.EnsureHubID(t.Context(), c, ns)
			assert.NoError(t, err)
			ids[i] = id
		})
	}
	starts.Wait()
	require.NoError(t, uuid.Validate(ids[0]))
	for _, id := range ids {
		assert.Equal(t, ids[0], id, "all get the id of the first")
	}
}

// C40: an id that is there is never replaced, not even a broken one.
func TestEnsureHubID_neverReplaces(t *testing.T) {
	c, ns := hubClient(t), hub(t).Namespace(t)
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: v1alpha1.HubConfigMap},
		Data:       map[string]string{v1alpha1.HubIDKey: "no uuid"},
	}
	require.NoError(t, c.Create(t.Context(), config))
	_, err := cluster.EnsureHubID(t.Context(), c, ns)
	assert.ErrorContains(t, err, "is not a UUID: restore it from a backup")
}

func TestEnsureHubID_needsTheNamespace(t *testing.T) {
	_, err := cluster.EnsureHubID(t.Context(), hubClient(t), "missing")
	assert.ErrorContains(t, err, "namespace missing does not exist: create it, or set --system-namespace")
}
