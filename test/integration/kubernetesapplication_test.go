package integration_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication"
	"waybill.dev/waybill/sync/controllers/kubernetesapplicationresource"
	"waybill.dev/waybill/sync/controllers/kubernetescluster"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// cool is the application that the document's section on namespaces tells of: a Namespace, a
// Deployment in it, and one without a namespace.
const cool = `
apiVersion: apps.waybill.dev/v1alpha1
kind: KubernetesApplication
metadata: {name: cool}
spec:
  clusterSelector: {matchLabels: {app: cool}}
  resourceTemplates:
  - metadata: {name: in-coolns}
    spec:
      secrets: [{name: sql}]
      template:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: cool, namespace: COOLNS}
        spec: &spec
          selector: {matchLabels: {app: cool}}
          template:
            metadata: {labels: {app: cool}}
            spec: {containers: [{name: cool, image: cool}]}
  - metadata: {name: in-default}
    spec:
      template:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: COOLNS}
        spec: *spec
  - metadata: {name: coolns}
    spec:
      template: {apiVersion: v1, kind: Namespace, metadata: {name: COOLNS}}
`

// scheduling is a hub that runs all controllers of the part, with two user clusters.
func scheduling(t *testing.T) (w *hub.World, berlin client.Client) {
	t.Helper()
	clusters := hubAndUser(t)
	w = hub.NewWorld(t, clusters[0])
	process := hub.Start(t, clusters[0], setupScheduling)
	t.Cleanup(process.Stop)
	for name, labels := range map[string]map[string]string{"berlin": {"app": "cool"}, "oslo": nil} {
		w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"value": clusters[1].Kubeconfig()}})
		w.Create(&v1alpha1.KubernetesCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec: v1alpha1.KubernetesClusterSpec{
				KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: name}, OnDelete: v1alpha1.DeleteAbandon,
			},
		})
	}
	berlin, err := client.New(clusters[1].RESTConfig(), client.Options{Scheme: hub.NewScheme(t)})
	require.NoError(t, err)
	return w, berlin
}

// hubAndUser are a hub and a user cluster, which no webhook guards.
func hubAndUser(t *testing.T) []*env.Cluster {
	t.Helper()
	return env.SharedAll(t, env.Options{Name: "scheduler", CRDs: []string{"../../charts/waybill/crds"}, Audit: true}, env.Options{Name: "berlin"})
}

func setupScheduling(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
	clusters := &kubernetescluster.Reconciler{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("test"), Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID,
	}
	applications := &kubernetesapplication.Reconciler{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("test"), Clusters: s.Clusters, HubID: s.HubID, Direct: mgr.GetAPIReader(),
	}
	resources := &kubernetesapplicationresource.Reconciler{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("test"), Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID,
	}
	for _, add := range []func(context.Context, ctrl.Manager) error{
		clusters.SetupWithManager, applications.SetupWithManager, resources.SetupWithManager,
	} {
		if err := add(ctx, mgr); err != nil {
			return err
		}
	}
	return nil
}

// W1-W3, W19, W25-W28, W30-W33, W42, W48, W53, W54: from the hub into one cluster, and out again.
func TestKubernetesApplication_fromTheHubIntoOneCluster(t *testing.T) {
	w, berlin := scheduling(t)
	coolns := w.Namespace + "-cool"
	w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sql"}, Data: map[string][]byte{"password": []byte("secret")}})
	app := &v1alpha1.KubernetesApplication{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(cool, "COOLNS", coolns)), app))
	w.Create(app)
	hub.AwaitReady(w, app)
	assert.Equal(t, "berlin", app.Status.Cluster)
	assert.EqualValues(t, 3, app.Status.SubmittedResources)

	deployment, secret := &appsv1.Deployment{}, &corev1.Secret{}
	require.NoError(t, berlin.Get(t.Context(), types.NamespacedName{Namespace: coolns, Name: "cool"}, deployment))
	require.NoError(t, berlin.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: coolns}, deployment))
	require.NoError(t, berlin.Get(t.Context(), types.NamespacedName{Namespace: coolns, Name: "in-coolns-sql"}, secret))
	assert.Equal(t, "secret", string(secret.Data["password"]))
	hub.Await(w, &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "in-default"}},
		"the status of the Deployment is not on the hub", func(kar *v1alpha1.KubernetesApplicationResource) bool {
			return kar.Status.Remote != nil && len(kar.Status.Remote.Raw) > len("{}")
		})

	require.NoError(t, w.Client.Delete(t.Context(), app))
	w.AwaitGone(app, "cool")
	for _, key := range []types.NamespacedName{{Namespace: coolns, Name: "cool"}, {Namespace: "default", Name: coolns}} {
		require.Error(t, berlin.Get(t.Context(), key, deployment), "gone before the application is")
	}
}

// What a user cluster refuses stands in the application, word for word.
func TestKubernetesApplication_quotesTheUserCluster(t *testing.T) {
	w, _ := scheduling(t)
	app := &v1alpha1.KubernetesApplication{}
	require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: apps.waybill.dev/v1alpha1
kind: KubernetesApplication
metadata: {name: refused}
spec:
  clusterSelector: {matchLabels: {app: cool}}
  resourceTemplates:
  - metadata: {name: bad}
    spec:
      template: {apiVersion: v1, kind: Service, metadata: {name: bad}, spec: {ports: [{port: 70000}]}}
`), app))
	w.Create(app)
	message := hub.AwaitReason(w, app, v1alpha1.ResourcesFailedReason)
	assert.Contains(t, message, `resource bad: `)
	assert.Contains(t, message, `Service "bad" is invalid: [spec.ports[0].port: Invalid value: 70000`)
	assert.Equal(t, v1alpha1.StateFailed, app.Status.State)
	require.NoError(t, w.Client.Delete(t.Context(), app))
	w.AwaitGone(app, "refused")
}
