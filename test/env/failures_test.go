package env_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"waybill.dev/waybill/test/env"
)

func plain(t *testing.T) *env.Cluster {
	t.Helper()
	return env.Shared(t, env.Options{Name: "plain", Audit: true})
}

func TestCluster_comesBackAfterCrash(t *testing.T) {
	c := plain(t)
	client, ns := clientOf(t, c), c.Namespace(t)
	require.NoError(t, c.KillAPIServer())
	_, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	require.Error(t, err)

	require.NoError(t, c.StartAPIServer(t.Context()))
	_, err = client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	require.NoError(t, err, "same address, same data")
	later := c.Namespace(t)
	require.Eventually(t, func() bool {
		_, err := client.CoreV1().ConfigMaps(later).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil
	}, limit, often, "kube-controller-manager outlived it")
}

func TestVia_hangs(t *testing.T) {
	c := plain(t)
	gate, err := env.NewGate(c.Address())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	config := env.Via(gate, c.RESTConfig())
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.Discovery().ServerVersion()
	require.NoError(t, err)

	require.NoError(t, gate.Hang())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestCluster_auditsRequests(t *testing.T) {
	c := plain(t)
	ns := c.Namespace(t)
	config, err := c.AddUser("counted", "system:masters")
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	maps := client.CoreV1().ConfigMaps(ns)
	mark, err := c.AuditMark(t.Context())
	require.NoError(t, err)

	_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = maps.Get(t.Context(), "absent", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer watch.Stop()
	_, err = maps.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(t, err)
	_, err = clientOf(t, c).CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)

	all, err := c.Requests(t.Context(), mark, env.ByUser("counted"))
	require.NoError(t, err)
	verbs := map[string]int{}
	for _, r := range all {
		verbs[r.Verb]++
		assert.Equal(t, "configmaps", r.Resource)
		assert.Equal(t, ns, r.Namespace)
	}
	assert.Equal(t, map[string]int{"create": 1, "get": 1, "watch": 1, "list": 1}, verbs)

	calls, err := c.Requests(t.Context(), mark, env.ByUser("counted"), env.Calls)
	require.NoError(t, err)
	require.Len(t, calls, 2, "neither the watch nor the list of an informer")
	assert.Equal(t, http.StatusNotFound, calls[1].Code)
	writes, err := c.Requests(t.Context(), mark, env.ByUser("counted"), env.Writes)
	require.NoError(t, err)
	require.Len(t, writes, 1)
	assert.Equal(t, "create", writes[0].Verb)
}

func TestCluster_addsUsers(t *testing.T) {
	c := plain(t)
	ns := c.Namespace(t)
	admin := clientOf(t, c)
	_, err := admin.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "viewers"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	viewer, err := c.AddUser("vera", "viewers")
	require.NoError(t, err)
	content, err := env.Kubeconfig("plain", viewer)
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	require.NoError(t, err, "a kubeconfig carries the user")
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // RBAC is read from a cache
		_, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, limit, often)
	err = client.CoreV1().ConfigMaps(ns).Delete(t.Context(), "any", metav1.DeleteOptions{})
	assert.True(t, apierrors.IsForbidden(err))
}

// parcels returns a directory with the CRD of a kind.
func parcels(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "parcels.yaml"), []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parcels.env.waybill.dev}
spec:
  group: env.waybill.dev
  scope: Namespaced
  names: {kind: Parcel, plural: parcels, singular: parcel, listKind: ParcelList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`), 0o600))
	return dir
}

func TestCluster_installsCRDs(t *testing.T) {
	c := plain(t)
	dir := parcels(t)
	require.NoError(t, c.InstallCRDs(t.Context(), dir))
	require.NoError(t, c.InstallCRDsFS(t.Context(), os.DirFS(dir)), "again, as an update")
	out, err := c.Kubectl(t.Context(), "", "get", "parcels.env.waybill.dev", "--all-namespaces", "-o", "name")
	require.NoError(t, err)
	assert.Empty(t, out)
}

func TestStartCluster_namesWhatIsMissing(t *testing.T) {
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	_, err := env.StartCluster(t.Context(), env.Options{Name: "empty"})
	assert.ErrorContains(t, err, "start cluster empty: etcd is missing in "+assets)
}

func TestCluster_Stop(t *testing.T) {
	c, err := env.StartCluster(t.Context(), env.Options{Name: "short", NoControllers: true})
	require.NoError(t, err)
	file, config := c.KubeconfigFile(), c.RESTConfig()
	c.Stop()
	c.Stop()
	assert.NoFileExists(t, file)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	_, err = client.Get(config.Host)
	assert.ErrorContains(t, err, "refused")
}
