package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K10: a definition belongs to the cluster, an installation to a namespace.
func TestCatalog_definitionsAreClusterScoped(t *testing.T) {
	c := admission(t)
	d, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	require.NoError(t, err)
	resources, err := d.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	require.NoError(t, err)
	namespaced := map[string]bool{}
	for _, r := range resources.APIResources {
		namespaced[r.Kind] = r.Namespaced
	}
	require.Contains(t, namespaced, v1alpha1.ApplicationDefinitionKind)
	assert.False(t, namespaced[v1alpha1.ApplicationDefinitionKind])
	assert.True(t, namespaced[v1alpha1.ApplicationInstallationKind])
}

// K4: who may do everything in a namespace, and install from the catalog, changes nothing of it.
func TestCatalog_isThePlatformAdministrators(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	published := definition(t, admin, nil)
	read := rule(v1alpha1.Group, []string{"applicationdefinitions"}, "get", "list", "watch", "install")
	user := c.user(t, "", read)
	c.grant(t, admin, user.(named).name, c.Namespace(t), rule("*", []string{"*"}, "*"))

	awaitReadable(t, user, published)
	assert.True(t, apierrors.IsForbidden(user.Create(t.Context(), newDefinition("1.0.0"))), "create")
	assert.True(t, apierrors.IsForbidden(user.Delete(t.Context(), published)), "delete")
	published.Spec.Description = "mine"
	assert.True(t, apierrors.IsForbidden(user.Update(t.Context(), published)), "update")

	publisher := c.user(t, "", write("applicationdefinitions"))
	awaitReadable(t, publisher, published)
	published.Spec.Description = "ours"
	require.NoError(t, publisher.Update(t.Context(), published))
}

// awaitReadable waits until the API server knows what the user was granted.
func awaitReadable(t *testing.T, as client.Client, d *v1alpha1.ApplicationDefinition) {
	t.Helper()
	require.Eventually(t, func() bool {
		return as.Get(t.Context(), client.ObjectKeyFromObject(d), d) == nil
	}, patience, often)
}

// K9: what the document leaves out is refused, and not accepted in silence: dependencies
// between definitions, object storage, and applications across clusters.
func TestCatalog_leavesOut(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	for name, text := range map[string]string{
		"dependencies": `
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata: {name: leaves-out}
spec:
  versions:
  - version: 1.0.0
    dependencies: [mysql]
    template: {source: {helm: {url: "https://charts.example.com", chartName: web, chartVersion: 1.0.0}}}`,
		"object storage": `
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata: {name: leaves-out}
spec:
  versions:
  - version: 1.0.0
    template: {source: {s3: {bucket: charts}}}`,
		"several clusters": `
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: leaves-out, namespace: default}
spec:
  applicationRef: {name: web, version: 1.0.0}
  clusters: [berlin, paris]`,
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			require.NoError(t, decode(text, object))
			err := admin.Create(t.Context(), object, client.FieldValidation("Strict"))
			require.Error(t, err)
			assert.Contains(t, err.Error(), "unknown field", "it is named")
		})
	}
}
