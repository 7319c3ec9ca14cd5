package env_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/test/env"
)

// newPool makes the rest of the test borrow clusters.
func newPool(t *testing.T) *env.Pool {
	t.Helper()
	pool, err := env.NewPool()
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	name, value, _ := strings.Cut(pool.Environment(), "=")
	t.Setenv(name, value)
	return pool
}

// litter leaves in a cluster what is hard to get rid of.
func litter(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	stuck := metav1.ObjectMeta{Name: "stuck", Finalizers: []string{"example.com/never"}}
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: stuck}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, client.CoreV1().Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}))
	_, err = client.RbacV1().ClusterRoles().Patch(t.Context(), "view", types.MergePatchType, []byte(`{"metadata":{"labels":{"edited":"yes"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "dead"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "dead.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1")},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"namespaces"}},
			}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "refused"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInternalError(err)
	}, limit, often, "the webhook is not called")
}

// A borrowed cluster is like a new one, whatever the borrower before has done to it.
func TestPool_lendsClustersLikeNew(t *testing.T) {
	pool, address := newPool(t), ""
	for _, borrower := range []string{"first", "second"} {
		t.Run(borrower, func(t *testing.T) {
			c := env.Start(t, env.Options{Name: borrower, NoControllers: true})
			client := clientOf(t, c)
			if address == "" {
				address = c.Address()
			}
			assert.Equal(t, address, c.Address())
			view, err := client.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
			require.NoError(t, err)
			assert.NotContains(t, view.Labels, "edited")
			_, err = c.Dir("beside")
			require.NoError(t, err)
			litter(t, client) // the second time, too, because nothing of it is there
			_, err = c.Kubectl(t.Context(), "", "get", "parcels.env.waybill.dev", "--all-namespaces")
			require.ErrorContains(t, err, "the server doesn't have a resource type")
			require.NoError(t, c.InstallCRDs(t.Context(), parcels(t)))
			_, err = c.Kubectl(t.Context(), "", "get", "parcels.env.waybill.dev", "--all-namespaces")
			require.NoError(t, err)
			require.NoError(t, c.KillAPIServer()) // and given back like that
		})
	}
	assert.Equal(t, "1 control planes started, lent 2 times", pool.Summary())
}

// What tests do with a cluster of their own they can do with a borrowed one.
func TestPool_lendsAllOfACluster(t *testing.T) {
	newPool(t)
	c := env.Start(t, env.Options{Name: "borrowed", NoControllers: true, Audit: true})
	client := clientOf(t, c)
	require.NoError(t, c.KillAPIServer())
	_, err := client.Discovery().ServerVersion()
	require.Error(t, err)
	require.NoError(t, c.StartAPIServer(t.Context()))
	mark, err := c.AuditMark(t.Context())
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	require.NoError(t, err)
	requests, err := c.Requests(t.Context(), mark, env.ByUser("admin"), env.Calls)
	require.NoError(t, err)
	require.Len(t, requests, 1)
	content, err := os.ReadFile(c.KubeconfigFile())
	require.NoError(t, err)
	assert.Contains(t, string(content), "current-context: borrowed")
}
