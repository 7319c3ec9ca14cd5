package kubernetescluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

var manifest = v1alpha1.ObjectTemplate{APIVersion: "v1", Kind: "ConfigMap", Metadata: v1alpha1.ObjectTemplateMetadata{Name: "web"}}

// application creates one that is scheduled to a cluster.
func (h *hub) application(name, cluster string) *v1alpha1.KubernetesApplication {
	h.t.Helper()
	app := &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name},
		Spec: v1alpha1.KubernetesApplicationSpec{
			ClusterSelector: &metav1.LabelSelector{},
			ClusterName:     cluster,
			ResourceTemplates: []v1alpha1.ResourceTemplate{{
				Metadata: v1alpha1.ResourceTemplateMetadata{Name: name}, Spec: v1alpha1.ResourceTemplateSpec{Template: manifest},
			}},
		},
	}
	require.NoError(h.t, h.Create(h.t.Context(), app))
	h.t.Cleanup(func() { _ = h.Client.Delete(cleanup(h.t), app) })
	h.seen(app)
	return app
}

// resource creates one that goes to a cluster, controlled by an application, or without a controller.
func (h *hub) resource(name, cluster string, app *v1alpha1.KubernetesApplication) *v1alpha1.KubernetesApplicationResource {
	h.t.Helper()
	kar := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name},
		Spec:       v1alpha1.KubernetesApplicationResourceSpec{ClusterName: cluster, Template: manifest},
	}
	if app != nil {
		kar.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(app, v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesApplicationKind))}
	}
	require.NoError(h.t, h.Create(h.t.Context(), kar))
	h.t.Cleanup(func() { _ = h.Client.Delete(cleanup(h.t), kar) })
	h.seen(kar)
	return kar
}

// C38: a KubernetesCluster stays until no application is left in the cluster.
func TestKubernetesCluster_waitsForApplications(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "it is engaged")
	app, stray := h.application("web", "eu-1"), h.resource("stray", "eu-1", nil)
	h.resource("web", "eu-1", app)
	h.application("elsewhere", "us-1")

	require.NoError(t, h.Delete(t.Context(), h.get("eu-1")))
	kc := h.until("eu-1", reason(v1alpha1.InUseReason), "it waits")
	message := condition(kc, v1alpha1.ReadyCondition).Message
	assert.Contains(t, message, "KubernetesApplication "+h.ns+"/web (of the hub), KubernetesApplicationResource "+h.ns+"/stray (of the hub)")
	assert.NotContains(t, message, "elsewhere")

	for _, o := range []client.Object{stray, app} {
		require.NoError(t, h.Client.Delete(t.Context(), o))
	}
	h.gone("eu-1")
}
