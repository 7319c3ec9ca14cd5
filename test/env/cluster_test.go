package env_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/test/env"
)

const (
	limit = env.Limit
	often = 50 * time.Millisecond
)

func clientOf(t *testing.T, c *env.Cluster) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	return client
}

func TestStartClusters_sideBySide(t *testing.T) {
	clusters, err := env.StartClusters(t.Context(), env.Options{Name: "hub", NoControllers: true}, env.Options{Name: "user", NoControllers: true})
	require.NoError(t, err)
	for _, c := range clusters {
		t.Cleanup(c.Stop)
		version, err := clientOf(t, c).Discovery().ServerVersion()
		require.NoError(t, err)
		assert.Regexp(t, `^v1\.\d+\.\d+$`, version.GitVersion)
	}
	assert.Equal(t, "hub", clusters[0].Name())
	assert.NotEqual(t, clusters[0].Address(), clusters[1].Address())
}

func TestCluster_runsPods(t *testing.T) {
	c := env.Shared(t, env.Options{Name: "pods", Pods: true})
	client, ns := clientOf(t, c), c.Namespace(t)
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To(int64(0)), // a namespace waits half of it before it looks again
					Containers:                    []corev1.Container{{Name: "web", Image: "web"}},
				},
			},
		},
	}
	_, err := client.AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Eventually(t, func() bool {
		d, err := client.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 1
	}, limit, often, "the Deployment becomes Available")

	require.NoError(t, client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	assert.Eventually(t, func() bool {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, limit, often, "the namespace ends, with the Pod in it")
}

func TestCluster_bindsClaims(t *testing.T) {
	c := env.Shared(t, env.Options{Name: "pods", Pods: true})
	claims := clientOf(t, c).CoreV1().PersistentVolumeClaims(c.Namespace(t))
	_, err := claims.Create(t.Context(), claim("data"), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Eventually(t, func() bool {
		got, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
		return err == nil && got.Status.Phase == corev1.ClaimBound
	}, limit, often)
}

func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}
