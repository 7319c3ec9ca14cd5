package kubernetescluster_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/charts"
	"waybill.dev/waybill/test/env"
)

const (
	firstImage  = "registry.example/waybill:1.2.3"
	secondImage = "registry.example/waybill:1.2.4"
)

// podCluster is a user cluster in which Pods become ready.
func podCluster(t testing.TB) *env.Cluster {
	return env.Shared(t, env.Options{Name: "pods", Pods: true})
}

// withAgent sets spec.agent, with values.
func withAgent(t *testing.T, values map[string]any) func(*v1alpha1.KubernetesCluster) {
	t.Helper()
	raw, err := json.Marshal(values)
	require.NoError(t, err)
	return func(kc *v1alpha1.KubernetesCluster) {
		kc.Spec.Agent = &v1alpha1.ClusterAgent{}
		if values != nil {
			kc.Spec.Agent.Values = &apiextensionsv1.JSON{Raw: raw}
		}
	}
}

func agentReady(kc *v1alpha1.KubernetesCluster) bool {
	return condition(kc, v1alpha1.AgentReadyCondition).Status == metav1.ConditionTrue
}

// agentReason says whether AgentReady is not True for that reason.
func agentReason(want string) func(*v1alpha1.KubernetesCluster) bool {
	return func(kc *v1alpha1.KubernetesCluster) bool {
		c := condition(kc, v1alpha1.AgentReadyCondition)
		return c.Status != metav1.ConditionTrue && c.Reason == want
	}
}

// atRevision says whether the agent is ready at a revision of its release.
func atRevision(revision int32) func(*v1alpha1.KubernetesCluster) bool {
	return func(kc *v1alpha1.KubernetesCluster) bool {
		return agentReady(kc) && kc.Status.Agent != nil && kc.Status.Agent.Release.Revision == revision
	}
}

func noAgent(kc *v1alpha1.KubernetesCluster) bool {
	return kc.Status.Agent == nil && condition(kc, v1alpha1.AgentReadyCondition).Type == ""
}

// removeAgent takes what a test installed out of the cluster again: its names are the same in all tests.
func removeAgent(h *hub, name string) {
	h.t.Helper()
	h.change(name, func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Agent = nil })
	h.until(name, noAgent, "it is uninstalled")
}

// fillWebhooks does what the webhook does once it can answer.
func fillWebhooks(t *testing.T, c client.Client) {
	t.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "waybill"}, configuration))
	before := configuration.DeepCopy()
	configuration.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "a.waybill.dev", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1")},
	}}
	require.NoError(t, c.Patch(t.Context(), configuration, client.MergeFrom(before)))
}

func deployment(t *testing.T, c client.Client, ns, name string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, d))
	return d
}

func there(t *testing.T, c client.Client, o client.Object) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	require.NoError(t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

// K40: with spec.agent, the hub brings the webhook, the agent and the CRDs, of its own version and image,
// follows with both when it is upgraded itself, and takes them away again.
func TestAgent_comesFollowsAndGoes(t *testing.T) {
	h := newHub(t, options{agentImage: firstImage})
	user := newClient(t, podCluster(t).RESTConfig())
	h.add("eu-1", podCluster(t).Kubeconfig(), withAgent(t, map[string]any{"webhook": map[string]any{"replicas": 1}}))
	kc := h.until("eu-1", agentReady, "it is installed, and its Pods run")
	assert.True(t, isReady(kc))
	assert.Equal(t, "installed 1.2.3: release "+h.ns+"/waybill revision 2", condition(kc, v1alpha1.AgentReadyCondition).Message)
	assert.Equal(t, "1.2.3", kc.Status.Agent.Version)
	assert.Equal(t, firstImage, kc.Status.Agent.Image)
	assert.NotEmpty(t, kc.Status.Agent.Inventory)

	sync := deployment(t, user, h.ns, "waybill-sync").Spec.Template.Spec.Containers[0]
	assert.Equal(t, firstImage, sync.Image)
	assert.Contains(t, sync.Args, "--controllers=agent")
	assert.EqualValues(t, 1, *deployment(t, user, h.ns, "waybill-webhook").Spec.Replicas)
	bindings := &rbacv1.ClusterRoleBindingList{}
	require.NoError(t, user.List(t.Context(), bindings, client.MatchingLabels{"app.kubernetes.io/name": "waybill"}))
	require.NotEmpty(t, bindings.Items)
	for _, b := range bindings.Items {
		assert.NotEqual(t, "cluster-admin", b.RoleRef.Name, "what runs there drives nothing")
	}
	crds, err := charts.CRDs()
	require.NoError(t, err)
	for _, crd := range crds {
		assert.True(t, there(t, crdClient(t, podCluster(t)), crd), crd.Name)
	}

	assert.True(t, there(t, user, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "waybill-edit"}}), "admission answers, so people may write")
	fillWebhooks(t, user)

	h.stop()
	h.options.agentImage = secondImage
	h.restart()
	kc = h.until("eu-1", atRevision(3), "the hub has another image")
	assert.Equal(t, secondImage, kc.Status.Agent.Image)
	assert.Equal(t, secondImage, deployment(t, user, h.ns, "waybill-webhook").Spec.Template.Spec.Containers[0].Image)
	h.change("eu-1", withAgent(t, map[string]any{"roles": map[string]any{"data": true}}))
	h.until("eu-1", atRevision(4), "other values")
	assert.Contains(t, deployment(t, user, h.ns, "waybill-sync").Spec.Template.Spec.Containers[0].Args, "--controllers=agent,data")

	require.NoError(t, user.Delete(t.Context(), deployment(t, user, h.ns, "waybill-webhook")))
	require.True(t, eventually(func() bool {
		return there(t, user, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "waybill-webhook"}})
	}), "what others delete is put back")
	h.until("eu-1", atRevision(4), "without another revision")

	removeAgent(h, "eu-1")
	assert.False(t, there(t, user, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "waybill-sync"}}))
	assert.True(t, there(t, crdClient(t, podCluster(t)), crds[0]), "what is of its kind stays")
	h.until("eu-1", isReady, "the cluster is as before")
}

// Until admission answers for the first time, no user gets rights to write what it is to check.
func TestAgent_givesNobodyRightsBeforeAdmissionAnswers(t *testing.T) {
	h := newHub(t, options{agentImage: firstImage})
	user := newClient(t, podCluster(t).RESTConfig())
	nowhere := map[string]any{"nodeSelector": map[string]any{"such": "none"}}
	h.add("eu-1", podCluster(t).Kubeconfig(), withAgent(t, map[string]any{"webhook": nowhere}))
	kc := h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool {
		return strings.Contains(condition(kc, v1alpha1.AgentReadyCondition).Message, "waiting until admission answers")
	}, "it is installed, and nothing runs")
	assert.Contains(t, condition(kc, v1alpha1.AgentReadyCondition).Message, "Deployment")
	assert.False(t, there(t, user, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "waybill-edit"}}))
	removeAgent(h, "eu-1")
}

// An upgrade that the API server refuses half way goes back to what was there, and is tried again.
func TestAgent_failedUpgradeLeavesWhatRuns(t *testing.T) {
	h := newHub(t, options{agentImage: firstImage})
	user := newClient(t, podCluster(t).RESTConfig())
	h.add("eu-1", podCluster(t).Kubeconfig(), withAgent(t, map[string]any{"webhook": map[string]any{"replicas": 1}}))
	h.until("eu-1", atRevision(2), "it is installed")

	h.change("eu-1", withAgent(t, map[string]any{
		"image":   map[string]any{"tag": "2"}, // of which the first Deployment gets to know
		"webhook": map[string]any{"replicas": 3, "podLabels": map[string]any{"no label!": "a"}},
	}))
	kc := h.until("eu-1", agentReason(v1alpha1.UpgradeFailedReason), "no Pod can have that label")
	message := condition(kc, v1alpha1.AgentReadyCondition).Message
	assert.Contains(t, message, `Deployment`)
	assert.Contains(t, message, `no label!`)
	assert.Contains(t, message, "what runs is installed 1.2.3: release "+h.ns+"/waybill revision ")
	assert.True(t, isReady(kc), "the cluster itself is not affected")
	assert.EqualValues(t, 1, *deployment(t, user, h.ns, "waybill-webhook").Spec.Replicas)
	assert.Equal(t, firstImage, kc.Status.Agent.Image)
	failed := kc.Status.Agent.Release.Revision
	h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.Agent.Release.Revision > failed }, "it is tried again")
	require.True(t, eventually(func() bool {
		return deployment(t, user, h.ns, "waybill-sync").Spec.Template.Spec.Containers[0].Image == firstImage
	}), "what was written goes back")

	h.change("eu-1", withAgent(t, map[string]any{"roles": map[string]any{"hub": "yes"}}))
	h.until("eu-1", agentReady, "what drives clusters cannot be switched on, whatever admission missed")
	assert.Contains(t, deployment(t, user, h.ns, "waybill-sync").Spec.Template.Spec.Containers[0].Args, "--controllers=agent")
	h.change("eu-1", withAgent(t, map[string]any{"replicas": 3}))
	kc = h.until("eu-1", agentReason(v1alpha1.InvalidValuesReason), "no such value")
	assert.Contains(t, condition(kc, v1alpha1.AgentReadyCondition).Message, "additional properties 'replicas' not allowed")
	removeAgent(h, "eu-1")
}

// A release that another user has installed is left alone, and the message says what can be done: when the
// record of that is gone, what it installed is taken over.
func TestAgent_leavesTheReleaseOfOthers(t *testing.T) {
	h := newHub(t, options{agentImage: firstImage})
	user := newClient(t, podCluster(t).RESTConfig())
	installByHand(t, h.ns)
	before := deployment(t, user, h.ns, "waybill-webhook")
	h.add("eu-1", podCluster(t).Kubeconfig(), withAgent(t, nil))
	kc := h.until("eu-1", agentReason(v1alpha1.ReleaseConflictReason), "it is of others")
	message := condition(kc, v1alpha1.AgentReadyCondition).Message
	assert.Contains(t, message, "release "+h.ns+"/waybill: another tool has installed a release of this name; uninstall it or, to take over its objects, delete the Secrets of its revisions")
	assert.Contains(t, message, "leave out spec.agent")
	assert.True(t, isReady(kc))
	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Agent = nil })
	h.until("eu-1", noAgent, "there is nothing of it")
	assert.Equal(t, before.Generation, deployment(t, user, h.ns, "waybill-webhook").Generation, "neither installed nor removed")

	h.change("eu-1", withAgent(t, nil))
	h.until("eu-1", agentReason(v1alpha1.ReleaseConflictReason), "it is still of others")
	require.NoError(t, user.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(h.ns), client.MatchingLabels{"owner": "helm"}))
	h.until("eu-1", agentReady, "that release is gone, which is found out by trying again")
	assert.Equal(t, before.UID, deployment(t, user, h.ns, "waybill-webhook").UID, "it is the same, and runs on")
	removeAgent(h, "eu-1")
}

// installByHand installs the chart as its README says.
func installByHand(t *testing.T, ns string) {
	t.Helper()
	loaded, err := loader.LoadDir("../../../charts/waybill")
	require.NoError(t, err)
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig := podCluster(t).KubeconfigFile()
	flags.KubeConfig, flags.Namespace = &kubeconfig, &ns
	configuration := &action.Configuration{}
	require.NoError(t, configuration.Init(flags, ns, "secret", t.Logf))
	install := action.NewInstall(configuration)
	install.ReleaseName, install.Namespace, install.CreateNamespace = "waybill", ns, true
	_, err = install.RunWithContext(t.Context(), loaded, map[string]any{"roles": map[string]any{"hub": false, "driver": false}})
	require.NoError(t, err)
}

// A process that ends in the middle leaves a release that the next one brings to its end.
func TestAgent_survivesTheEndOfTheProcess(t *testing.T) {
	h := newHub(t, options{agentImage: firstImage})
	user := newClient(t, podCluster(t).RESTConfig())
	h.add("eu-1", podCluster(t).Kubeconfig(), withAgent(t, nil))
	require.True(t, eventually(func() bool {
		records := &corev1.SecretList{}
		require.NoError(t, user.List(t.Context(), records, client.InNamespace(h.ns), client.MatchingLabels{"owner": "helm"}))
		return len(records.Items) > 0
	}), "it has begun")
	h.stop()
	require.NotNil(t, h.get("eu-1").Status.Agent, "what may be there is written before it is")
	h.restart()
	h.until("eu-1", agentReady, "the next process goes on")

	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Agent = nil })
	require.True(t, eventually(func() bool {
		return h.get("eu-1").Status.Agent == nil || !there(t, user, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "waybill-sync"}})
	}), "the uninstall has begun")
	h.restart()
	h.until("eu-1", noAgent, "the next process ends it")
}

// The agent goes last, when nothing else is left in the cluster; Abandon leaves it, and the next KubernetesCluster
// that leads to the cluster takes it over as it is.
func TestAgent_goesLast(t *testing.T) {
	h := newHub(t, options{agentImage: firstImage})
	user := newClient(t, podCluster(t).RESTConfig())
	h.add("eu-1", podCluster(t).Kubeconfig(), withAgent(t, nil))
	h.until("eu-1", atRevision(2), "it is installed")
	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.OnDelete = v1alpha1.DeleteAbandon })
	require.NoError(t, h.Delete(t.Context(), h.get("eu-1")))
	h.gone("eu-1")
	records := func() []string {
		list := &corev1.SecretList{}
		require.NoError(t, user.List(t.Context(), list, client.InNamespace(h.ns), client.MatchingLabels{"owner": "helm"}))
		var found []string
		for _, s := range list.Items {
			found = append(found, s.Name)
		}
		return found
	}
	require.Equal(t, []string{"sh.helm.release.v1.waybill.v1", "sh.helm.release.v1.waybill.v2"}, records())
	fillWebhooks(t, user)
	before := deployment(t, user, h.ns, "waybill-webhook").Generation

	gate, kubeconfig := gated(t, podCluster(t))
	h.add("eu-2", kubeconfig, withAgent(t, nil))
	h.until("eu-2", agentReady, "it is as it should be")
	assert.Equal(t, before, deployment(t, user, h.ns, "waybill-webhook").Generation, "nothing of it changes")
	gate.Shut()
	h.until("eu-2", agentReason(v1alpha1.ClusterUnreachableReason), "its state is not known")
	require.NoError(t, gate.Open())
	h.until("eu-2", agentReady, "it is back")

	inst := install(t, user, podCluster(t).Namespace(t), "web")
	h.until("eu-2", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.InstallationCount == 1 }, "an installation")
	require.NoError(t, h.Delete(t.Context(), h.get("eu-2")))
	h.until("eu-2", reason(v1alpha1.InUseReason), "the installation is left")
	assert.NotEmpty(t, records(), "admission is needed until the end")
	require.NoError(t, user.Delete(t.Context(), inst))
	h.gone("eu-2")
	assert.Empty(t, records())
	list := &appsv1.DeploymentList{}
	require.NoError(t, user.List(t.Context(), list, client.InNamespace(h.ns)))
	assert.Empty(t, slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return d.DeletionTimestamp != nil }))
}

// The hub has the chart that it was installed by, and so has a seed.
func TestAgent_refusedByTheSchema(t *testing.T) {
	h := newHub(t, options{})
	kc := &v1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "a"},
		Spec:       v1alpha1.KubernetesClusterSpec{Agent: &v1alpha1.ClusterAgent{}},
	}
	require.ErrorContains(t, h.Create(t.Context(), kc), "agent needs kubeconfigSecretRef")
	kc.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "a"}
	kc.Spec.Role = v1alpha1.ClusterRoleSeed
	require.ErrorContains(t, h.Create(t.Context(), kc), "a seed runs a chart of its own")

	h.add("self", hubCluster(t).Kubeconfig(), withAgent(t, nil))
	got := h.until("self", agentReason(v1alpha1.AgentNotInstalledReason), "it is the hub")
	assert.Contains(t, condition(got, v1alpha1.AgentReadyCondition).Message, "the cluster that the hub runs in")
	assert.Nil(t, got.Status.Agent)
}
