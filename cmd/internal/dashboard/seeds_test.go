package dashboard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// seeded creates a hub with a seed, which is the hub again, and clusters of these names, which both have.
func seeded(t *testing.T, api *env.Cluster, namespace string, names ...string) client.Client {
	t.Helper()
	c := create(t, api)
	require.NoError(t, c.Create(t.Context(), kubeconfigOf(namespace, "of-waybill", api.Kubeconfig())))
	for _, name := range append([]string{"seed"}, names...) {
		k := cluster(namespace, name)
		k.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "of-waybill", Key: "kubeconfig"}
		if name == "seed" {
			k.Spec.Role = v1alpha1.ClusterRoleSeed
		}
		create(t, api, k)
	}
	return c
}

// What is behind a seed has no page: an address of its namesake of the hub would lead to another object.
func TestTree_whatIsBehindASeedHasNoPage(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: v1alpha1.ApplicationInstallationSpec{
		ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"},
	}}
	seeded(t, api, ns, "berlin")
	create(t, api, inst)
	got := open(t, api.RESTConfig(), ns).get(objectLink("", "", "kubernetesclusters", ns, "seed") + "/tree").text()
	assert.Contains(t, got, "seed/berlin")
	assert.Contains(t, got, objectLink(ns, "seed", "applicationinstallations", ns, "web"), "the seed is a cluster of the hub")
	assert.NotContains(t, got, objectLink(ns, "berlin", "applicationinstallations", ns, "web"))
	assert.NotContains(t, got, objectLink("", "", "kubernetesclusters", ns, "seed/berlin"))
}
