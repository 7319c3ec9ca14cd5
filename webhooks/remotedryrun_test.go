package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/webhooks"
)

func service(port int64) *unstructured.Unstructured {
	object := newObject("v1", "Service", "web")
	object.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": port}}}
	return object
}

// W2, P3: with the flag, what the user cluster would refuse is a warning that quotes it.
func TestRemoteDryRun_warns(t *testing.T) {
	hub := lifecycle(t)
	user := env.Shared(t, env.Options{Name: "bare", NoControllers: true, CRDs: []string{crds}})
	s := serve(t, hub.RESTConfig(), func(o *webhooks.Options) { o.ParseKubeconfig = clientcmd.RESTConfigFromKubeConfig })
	s.awaitReady(t)
	admin, warned := newClient(t, hub.RESTConfig(), nil)
	ns := hub.Namespace(t)
	require.NoError(t, admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "berlin"}, Data: map[string][]byte{"value": user.Kubeconfig()},
	}))
	berlin := newCluster(ns, "berlin")
	require.NoError(t, admin.Create(t.Context(), berlin))

	app := newKubernetesApplication(ns)
	app.Spec.ResourceTemplates = []v1alpha1.ResourceTemplate{
		newResourceTemplate("web", service(80)),
		newResourceTemplate("later", newObject("later.example.com/v1", "Later", "web")),
	}
	require.NoError(t, admin.Create(t.Context(), app), "there is no cluster to ask")
	app.Spec.ClusterName = berlin.Name
	require.NoError(t, admin.Update(t.Context(), app), "no template has changed")
	assert.Empty(t, warned.take())

	app.Spec.ResourceTemplates[0] = newResourceTemplate("web", service(70000))
	require.NoError(t, admin.Update(t.Context(), app))
	got := warned.take()
	require.Len(t, got, 1)
	assert.Contains(t, got[0], "templates could not be validated by a dry run in cluster "+berlin.Name+": it does not answer")

	berlin.Status.Reachable = true
	require.NoError(t, admin.Status().Update(t.Context(), berlin))
	app.Spec.ResourceTemplates[0] = newResourceTemplate("web", service(70001))
	app.Spec.ResourceTemplates = append(app.Spec.ResourceTemplates, newResourceTemplate("homeless", inNamespace("not-there-yet")))
	require.NoError(t, admin.Update(t.Context(), app), "a refusal is a warning")
	got = warned.take()
	require.Len(t, got, 1, "what may come with the application is none")
	assert.Contains(t, got[0], `resource template web: cluster `+berlin.Name+` would refuse it: Service "web" is invalid: [spec.ports[0].port: Invalid value: 70001`)

	app.Spec.ResourceTemplates[0] = newResourceTemplate("web", service(443))
	require.NoError(t, admin.Update(t.Context(), app))
	assert.Empty(t, warned.take())
	inBerlin, _ := newClient(t, user.RESTConfig(), nil)
	require.Error(t, inBerlin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, &corev1.Service{}), "nothing is written")
}

func inNamespace(namespace string) *unstructured.Unstructured {
	object := newObject("v1", "ConfigMap", "web")
	object.SetNamespace(namespace)
	return object
}
