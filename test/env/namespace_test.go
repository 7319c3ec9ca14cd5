package env_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

func TestNamespace_isVacatedAfterItsTest(t *testing.T) {
	c := env.Shared(t, env.Options{Name: "pods", Pods: true})
	require.NoError(t, c.InstallCRDs(t.Context(), "../../charts/waybill/crds/apps.waybill.dev_hookactions.yaml"))
	client := clientOf(t, c)
	dynamicClient, err := dynamic.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	actions := dynamicClient.Resource(v1alpha1.GroupVersion.WithResource("hookactions"))
	claims := func(ns string) error {
		_, err := client.CoreV1().PersistentVolumeClaims(ns).Get(t.Context(), "data", metav1.GetOptions{})
		return err
	}
	action := func(ns string) error {
		_, err := actions.Namespace(ns).Get(t.Context(), "lock", metav1.GetOptions{})
		return err
	}

	fill := func(t *testing.T) string {
		ns := c.Namespace(t)
		_, err := client.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), claim("data"), metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "data"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = actions.Namespace(ns).Create(t.Context(), hookAction("lock"), metav1.CreateOptions{})
		require.NoError(t, err)
		return ns
	}
	other := fill(t)
	var ended string
	require.True(t, t.Run("test", func(t *testing.T) { ended = fill(t) }))

	assert.Eventually(t, func() bool { return apierrors.IsNotFound(claims(ended)) }, limit, often, "kube-controller-manager lets go of the claim")
	assert.True(t, apierrors.IsNotFound(action(ended)), "objects of Waybill's kinds are deleted")
	assert.NoError(t, claims(other), "another test's namespace is left alone")
	assert.NoError(t, action(other), "another test's namespace is left alone")
	_, err = client.CoreV1().ConfigMaps(ended).Get(t.Context(), "data", metav1.GetOptions{})
	assert.NoError(t, err, "what nothing acts on goes with the cluster")
	ns, err := client.CoreV1().Namespaces().Get(t.Context(), ended, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Nil(t, ns.DeletionTimestamp, "kube-controller-manager need not look for objects of every kind")
}

func hookAction(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "HookAction",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"action": map[string]any{"exec": map[string]any{"command": []any{"lock"}}}},
	}}
}
