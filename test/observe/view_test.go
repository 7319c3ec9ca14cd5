package observe_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

func TestMain(m *testing.M) { env.Main(m) }

const limit = env.Limit

func open(t *testing.T) (*env.Cluster, typedcorev1.ConfigMapInterface, *observe.View) {
	t.Helper()
	cluster := env.Shared(t, env.Options{Name: "observed", NoControllers: true})
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	namespace := cluster.Namespace(t)
	view, err := observe.Open(t.Context(), cluster.RESTConfig(), observe.Of{
		GroupVersionResource: corev1.SchemeGroupVersion.WithResource("configmaps"),
		Namespace:            namespace, Selector: "seen=yes",
	})
	require.NoError(t, err)
	return cluster, client.CoreV1().ConfigMaps(namespace), view
}

func create(t *testing.T, maps typedcorev1.ConfigMapInterface, name, seen string) {
	t.Helper()
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"seen": seen},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestView_countsWhatMatches(t *testing.T) {
	_, maps, view := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for i := range 3 {
		create(t, maps, fmt.Sprintf("a%d", i), "yes")
	}
	create(t, maps, "b", "no")
	require.NoError(t, view.Until(ctx, 3, observe.Any))
	require.NoError(t, view.Until(ctx, 1, observe.Named("a1", observe.Has("yes", "metadata", "labels", "seen"))))

	require.NoError(t, maps.Delete(t.Context(), "a1", metav1.DeleteOptions{}))
	require.NoError(t, view.Until(ctx, 0, observe.Named("a1", observe.Any)))
	require.NoError(t, view.Until(ctx, 2, observe.Any))
}

func TestView_saysHowManyThereAre(t *testing.T) {
	_, maps, view := open(t)
	create(t, maps, "only", "yes")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	require.NoError(t, view.Until(ctx, 1, observe.Any))

	expired, stop := context.WithCancel(t.Context())
	stop()
	err := view.Until(expired, 2, observe.Any)
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "1 of 2 are there")
}

func TestView_outlivesTheAPIServer(t *testing.T) {
	cluster, maps, view := open(t)
	require.NoError(t, cluster.KillAPIServer())
	require.NoError(t, cluster.StartAPIServer(t.Context()))
	create(t, maps, "later", "yes")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	require.NoError(t, view.Until(ctx, 1, observe.Any))
}
