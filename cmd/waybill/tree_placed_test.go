package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// templateOf returns a resource template of that name with this manifest.
func templateOf(t testing.TB, name, manifest string) v1alpha1.ResourceTemplate {
	t.Helper()
	template := v1alpha1.ResourceTemplate{Metadata: v1alpha1.ResourceTemplateMetadata{Name: name}}
	require.NoError(t, json.Unmarshal([]byte(manifest), &template.Spec.Template))
	return template
}

// placedApplication creates an application that is scheduled to a cluster, with resources as
// its controllers would make them. The one of the last template is not there yet.
func placedApplication(t testing.TB, c client.Client, app *v1alpha1.KubernetesApplication) {
	t.Helper()
	app.Spec.ClusterSelector = &metav1.LabelSelector{}
	app.Status = v1alpha1.KubernetesApplicationStatus{
		State: v1alpha1.StatePartiallySubmitted, Cluster: app.Spec.ClusterName, DesiredResources: 3, SubmittedResources: 2,
	}
	create(t, c, app)
	templates := app.Spec.ResourceTemplates
	for _, template := range templates[:len(templates)-1] {
		create(t, c, resourceOf(app, template))
	}
}

func resourceOf(app *v1alpha1.KubernetesApplication, template v1alpha1.ResourceTemplate) *v1alpha1.KubernetesApplicationResource {
	kar := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: app.Namespace, Name: template.Metadata.Name,
			Labels:          map[string]string{v1alpha1.KubernetesApplicationLabel: app.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(app, v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesApplicationKind))},
		},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{ClusterName: app.Spec.ClusterName, Template: template.Spec.Template},
	}
	kar.Status.State = v1alpha1.StateSubmitted
	kar.Status.Conditions = []metav1.Condition{condition("Ready", "True", "Succeeded", "submitted to "+app.Spec.ClusterName)}
	return kar
}

// frontApplication is an application of a Namespace, a Deployment with a copied Secret, and a
// Service that was not submitted.
func frontApplication(t testing.TB, namespace, cluster, target string) *v1alpha1.KubernetesApplication {
	t.Helper()
	return &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "front"},
		Spec: v1alpha1.KubernetesApplicationSpec{
			ClusterName: cluster,
			ResourceTemplates: []v1alpha1.ResourceTemplate{
				templateOf(t, "front-deployment", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"`+target+`","name":"front"},"spec":{"replicas":1}}`),
				templateOf(t, "front-namespace", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+target+`"}}`),
				templateOf(t, "front-service", `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"`+target+`","name":"front"}}`),
			},
		},
	}
}

// W2, W11, A92: across the hub and the user cluster, down to the Pods.
func TestTree_ofKubernetesApplication(t *testing.T) {
	h, u := hub(t), user(t)
	hubClient, userClient := clientOf(t, h), clientOf(t, u)
	namespace, target := h.Namespace(t), u.Namespace(t)
	engage(t, hubClient, namespace, "berlin", u.Kubeconfig())
	create(t, userClient, deployment(target, "front"))
	require.Eventually(t, func() bool {
		d := &appsv1.Deployment{}
		return userClient.Get(t.Context(), client.ObjectKey{Namespace: target, Name: "front"}, d) == nil && d.Status.AvailableReplicas == 1
	}, limit, often)
	app := frontApplication(t, namespace, "berlin", target)
	placedApplication(t, hubClient, app)
	kar := &v1alpha1.KubernetesApplicationResource{}
	require.NoError(t, hubClient.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "front-deployment"}, kar))
	kar.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{
		{ID: target + "_front_apps_Deployment", Version: "v1"}, {ID: target + "_front-deployment-sql__Secret", Version: "v1"},
	}}
	require.NoError(t, hubClient.Status().Update(t.Context(), kar))

	want := []string{
		"KubernetesApplication/front InProgress",
		"├─ KubernetesApplicationResource/front-deployment Current",
		"│  ├─ Deployment/front Current",
		"│  │  └─ ReplicaSet/front Current",
		"│  │     └─ Pod/front Current",
		"│  └─ Secret/front-deployment-sql NotFound",
		"├─ KubernetesApplicationResource/front-namespace Current",
		"│  └─ Namespace/" + target + " Current",
		"└─ KubernetesApplicationResource/front-service NotFound",
	}
	for _, args := range [][]string{{"kubernetesapplication/front", "-n", namespace}, {"front", "-n", namespace}} {
		got := waybill(t, h, append([]string{"tree"}, args...)...)
		require.Equal(t, 0, got.code, got.errOut)
		assert.Empty(t, got.errOut)
		assert.Equal(t, want, lines(got.out), got.out)
		assert.Regexp(t, `Deployment/front +`+target+` +Current +in berlin\n`, got.out)
		assert.Regexp(t, `(?m)Namespace/`+target+` +Current +in berlin$`, got.out, "a cluster-scoped object is in no namespace")
	}

	got := waybill(t, h, "tree", "kubernetesapplicationresource/front-namespace", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{"KubernetesApplicationResource/front-namespace Current", "└─ Namespace/" + target + " Current"}, lines(got.out))

	got = waybill(t, h, "tree", "cluster/berlin", "-n", namespace, "--depth", "2")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "─ KubernetesApplication/front ")
	assert.Contains(t, got.out, "   └─ KubernetesApplicationResource/front-service ")
}

// A cluster that does not answer, or that is gone, leaves what the hub knows.
func TestTree_ofKubernetesApplicationInALostCluster(t *testing.T) {
	h, c := hub(t), clientOf(t, hub(t))
	namespace := h.Namespace(t)
	engage(t, c, namespace, "dublin", deadKubeconfig(t, user(t)))
	app := frontApplication(t, namespace, "dublin", "shop")
	placedApplication(t, c, app)
	kar := &v1alpha1.KubernetesApplicationResource{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "front-deployment"}, kar))
	kar.Status.Namespace = "shop"
	kar.Status.Remote = &apiextensionsv1.JSON{Raw: []byte(`{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,
		"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}`)}
	require.NoError(t, c.Status().Update(t.Context(), kar))

	got := waybill(t, h, "tree", "kubernetesapplication/front", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Regexp(t, `Deployment/front +shop +Unknown +in dublin; the API server of dublin does not answer.*; last seen Current`, got.out)

	require.NoError(t, c.Delete(t.Context(), &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dublin"}}))
	got = waybill(t, h, "tree", "kubernetesapplication/front", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Regexp(t, `Deployment/front +shop +Unknown +in dublin; no KubernetesCluster dublin in the hub`, got.out)
}

// An application that templates an Application leads to its components, where they are.
func TestTree_ofATemplatedApplication(t *testing.T) {
	h, u := hub(t), user(t)
	hubClient, userClient := clientOf(t, h), clientOf(t, u)
	namespace, target := h.Namespace(t), u.Namespace(t)
	engage(t, hubClient, namespace, "berlin", u.Kubeconfig())
	create(t, userClient, consisting(target, "shop", v1alpha1.ApplicationComponent{Kind: "ConfigMap"}), belonging(configMap(target, "settings"), "shop"))
	app := frontApplication(t, namespace, "berlin", target)
	app.Spec.ResourceTemplates[0] = templateOf(t, "front-application",
		`{"apiVersion":"apps.waybill.dev/v1alpha1","kind":"Application","metadata":{"namespace":"`+target+`","name":"shop"}}`)
	placedApplication(t, hubClient, app)
	got := waybill(t, h, "tree", "kubernetesapplication/front", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{
		"├─ KubernetesApplicationResource/front-application Current",
		"│  └─ Application/shop Current",
		"│     └─ ConfigMap/settings Current",
	}, lines(got.out)[1:4], got.out)
}

// W14, W22: the columns of the document.
func TestGet_kubernetesApplications(t *testing.T) {
	h, c := hub(t), clientOf(t, hub(t))
	namespace := h.Namespace(t)
	placedApplication(t, c, frontApplication(t, namespace, "dublin", "shop"))
	assertTable(t, h, []string{"kubernetesapplications", "-n", namespace},
		[]string{"NAME", "CLUSTER", "STATUS", "DESIRED", "SUBMITTED"}, []string{"front", "dublin", "PartiallySubmitted", "3", "2"})
	assertTable(t, h, []string{"kubernetesapplicationresources", "front-namespace", "-n", namespace},
		[]string{"NAME", "TEMPLATE-KIND", "TEMPLATE-NAME", "CLUSTER", "STATUS"}, []string{"front-namespace", "Namespace", "shop", "dublin", "Submitted"})
}

// assertTable asserts what waybill and kubectl print for one object.
func assertTable(t *testing.T, cluster *env.Cluster, args []string, header, row []string) {
	t.Helper()
	got := waybill(t, cluster, append([]string{"get"}, args...)...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, [][]string{header, row}, columns(got.out))
	kubectl, err := cluster.Kubectl(t.Context(), "", append([]string{"get"}, args...)...)
	require.NoError(t, err)
	assert.Equal(t, [][]string{header, row}, columns(kubectl))
}
