package kubernetescluster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/test/env"
)

func kubeSystemUID(t *testing.T, c *env.Cluster) string {
	t.Helper()
	ns := &corev1.Namespace{}
	require.NoError(t, newClient(t, c.RESTConfig()).Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, ns))
	return string(ns.UID)
}

// K40, C38: a kubeconfig is all it takes; the CRDs are brought by the product.
func TestKubernetesCluster_isEngaged(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	kc := h.until("eu-1", isReady, "the cluster is ready")

	assert.True(t, kc.Status.Reachable)
	assert.Regexp(t, `^v1\.\d+`, kc.Status.Version)
	assert.Equal(t, kubeSystemUID(t, userCluster(t)), kc.Status.UID)
	require.NotNil(t, kc.Status.LastSeen)
	assert.Equal(t, kc.Generation, kc.Status.ObservedGeneration)
	assert.Equal(t, metav1.ConditionTrue, condition(kc, v1alpha1.ClusterReachableCondition).Status)
	assert.Empty(t, condition(kc, v1alpha1.ReconcilingCondition))
	assert.Empty(t, condition(kc, v1alpha1.StalledCondition))

	user := newClient(t, userCluster(t).RESTConfig())
	require.NoError(t, user.List(t.Context(), &v1alpha1.ApplicationInstallationList{}))
	require.NoError(t, user.List(t.Context(), &v1alpha1.ApplicationDefinitionList{}))
	require.NoError(t, user.List(t.Context(), &v1alpha1.ApplicationList{}))
	require.Error(t, user.List(t.Context(), &v1alpha1.GitSyncList{}), "what lives on the hub stays there")
}

// C38: without a kubeconfig it is the cluster it lives in.
func TestKubernetesCluster_isTheHub(t *testing.T) {
	h := newHub(t, options{})
	h.add("self", nil)
	kc := h.until("self", isReady, "the hub is ready")
	assert.Equal(t, kubeSystemUID(t, hubCluster(t)), kc.Status.UID)
	assert.True(t, kc.Status.Reachable)
	assert.Regexp(t, `^v1\.\d+`, kc.Status.Version)

	scheme := newScheme(t)
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	direct, err := client.New(hubCluster(t).RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, direct.Get(t.Context(), client.ObjectKey{Name: "applications.apps.waybill.dev"}, crd))
	assert.NotContains(t, crd.Annotations, v1alpha1.CRDHashAnnotation, "the hub's CRDs belong to the chart")
}

// C38: what keeps a kubeconfig from being used is said, and taken up when it is corrected.
func TestKubernetesCluster_kubeconfigIsPutRight(t *testing.T) {
	cases := map[string]struct {
		secret  map[string][]byte
		reason  string
		message string
	}{
		"NoSecret": {
			reason:  v1alpha1.SecretNotFoundReason,
			message: "does not exist: create it, with a kubeconfig in it",
		},
		"NoKey": {
			secret:  map[string][]byte{"config": []byte("x")},
			reason:  v1alpha1.InvalidSecretReason,
			message: `has no key "value"`,
		},
		"Refused": {
			secret: map[string][]byte{"kubeconfig": []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",` +
				`"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],` +
				`"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1"}}],` +
				`"users":[{"name":"u","user":{"tokenFile":"/token"}}]}`)},
			reason:  v1alpha1.InvalidKubeconfigReason,
			message: "users[u].user.tokenFile is a file: put its content into token",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, options{})
			if tc.secret != nil {
				h.secret("eu-1", tc.secret)
			}
			h.add("eu-1", nil, func(kc *v1alpha1.KubernetesCluster) {
				kc.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "eu-1"}
			})
			kc := h.until("eu-1", reason(tc.reason), "the reason is said")
			assert.Contains(t, condition(kc, v1alpha1.ReadyCondition).Message, tc.message)
			assert.Equal(t, metav1.ConditionTrue, condition(kc, v1alpha1.StalledCondition).Status, "a person has to act")
			assert.Equal(t, metav1.ConditionUnknown, condition(kc, v1alpha1.ClusterReachableCondition).Status)
			_, err := h.registry.Get(h.key("eu-1"))
			require.ErrorIs(t, err, cluster.ErrNotEngaged)
			assert.ErrorContains(t, err, tc.message, "who needs the cluster is told the same")
			assert.ErrorContains(t, err, "Secret "+h.ns+"/eu-1", "with the name of the Secret")

			h.secret("eu-1", map[string][]byte{"kubeconfig": userCluster(t).Kubeconfig()})
			h.until("eu-1", isReady, "the Secret was corrected")
		})
	}
}

// A user cluster that is down from the start, comes up, dies and comes back. lastSeen is
// written on loss and return only.
func TestKubernetesCluster_isLostAndBack(t *testing.T) {
	h := newHub(t, options{})
	gate, kubeconfig := gated(t, userCluster(t))
	gate.Shut()
	h.add("eu-1", kubeconfig)
	kc := h.until("eu-1", reason(v1alpha1.ClusterUnreachableReason), "it is down")
	assert.Equal(t, "the API server does not answer: connection refused; retrying until it does", condition(kc, v1alpha1.ReadyCondition).Message)
	assert.Equal(t, metav1.ConditionFalse, condition(kc, v1alpha1.ClusterReachableCondition).Status)
	assert.Nil(t, kc.Status.LastSeen, "never seen")

	require.NoError(t, gate.Open())
	kc = h.until("eu-1", isReady, "it is up")
	require.NotNil(t, kc.Status.LastSeen)

	gate.Shut()
	kc = h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool {
		return strings.Contains(condition(kc, v1alpha1.ReadyCondition).Message, "connection refused")
	}, "it died")
	assert.False(t, kc.Status.Reachable)
	assert.WithinDuration(t, time.Now(), kc.Status.LastSeen.Time, limit)
	assert.NotEmpty(t, kc.Status.UID, "what was known stays")
	assert.NotEmpty(t, kc.Status.Version)
	version := kc.ResourceVersion
	assert.Equal(t, version, h.get("eu-1").ResourceVersion, "a try that ends the same is not written down")

	require.NoError(t, gate.Open())
	h.until("eu-1", isReady, "it is back")
}

// A user cluster that comes back with other credentials.
func TestKubernetesCluster_rotatedCredentials(t *testing.T) {
	h := newHub(t, options{})
	admin := userCluster(t).RESTConfig()
	admin.CertData, admin.KeyData, admin.BearerToken = nil, nil, "expired"
	expired, err := env.Kubeconfig("user", admin)
	require.NoError(t, err)
	h.add("eu-1", expired)
	kc := h.until("eu-1", reason(v1alpha1.ForbiddenReason), "the credentials are refused")
	assert.Equal(t, "the API server refuses the credentials of the kubeconfig (401): renew them", condition(kc, v1alpha1.ReadyCondition).Message)
	assert.True(t, kc.Status.Reachable, "it answers")

	h.secret("eu-1", map[string][]byte{"value": userCluster(t).Kubeconfig()})
	h.until("eu-1", isReady, "the credentials were renewed")
}

// C38: credentials that are renewed in time, for the same user, end nothing.
func TestKubernetesCluster_renewedCredentials(t *testing.T) {
	h := newHub(t, options{})
	renew := func() {
		renewed, err := userCluster(t).AddUser(h.ns, "system:masters")
		require.NoError(t, err)
		kubeconfig, err := env.Kubeconfig("user", renewed)
		require.NoError(t, err)
		h.secret("eu-1", map[string][]byte{"value": kubeconfig})
	}
	renew()
	h.add("eu-1", nil, func(kc *v1alpha1.KubernetesCluster) {
		kc.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "eu-1"}
	})
	h.until("eu-1", isReady, "it is engaged")
	c, err := h.registry.Get(h.key("eu-1"))
	require.NoError(t, err)
	clientset, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	credential := func() authenticationv1.ExtraValue {
		review, err := clientset.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		require.NoError(t, err)
		return review.Status.UserInfo.Extra["authentication.kubernetes.io/credential-id"]
	}
	first := credential()

	renew()
	require.True(t, eventually(func() bool { return !assert.ObjectsAreEqual(first, credential()) }), "the new credentials are not used")
	again, err := h.registry.Get(h.key("eu-1"))
	require.NoError(t, err)
	assert.Same(t, c, again)
	assert.NoError(t, c.Context().Err())
}

// What else is in the Secret of a kubeconfig is no reason to cut the cluster.
func TestKubernetesCluster_anotherKeyOfTheSecret(t *testing.T) {
	h := newHub(t, options{})
	kubeconfig := userCluster(t).Kubeconfig()
	h.add("eu-1", kubeconfig)
	h.until("eu-1", isReady, "it is engaged")
	c, err := h.registry.Get(h.key("eu-1"))
	require.NoError(t, err)

	h.secret("eu-1", map[string][]byte{"value": kubeconfig, "rotated": []byte("yesterday")})
	written, seen := content.Metadata(content.Secret), content.Metadata(content.Secret)
	require.NoError(t, h.Get(t.Context(), h.key("eu-1"), written))
	require.True(t, eventually(func() bool {
		err := h.registry.Local().Cache().Get(t.Context(), h.key("eu-1"), seen)
		return err == nil && seen.ResourceVersion == written.ResourceVersion
	}), "the Secret is not seen")
	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) {
		kc.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "once more"}
	})
	h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.LastHandledReconcileAt == "once more" }, "it is looked at once more")
	again, err := h.registry.Get(h.key("eu-1"))
	require.NoError(t, err)
	assert.Same(t, c, again)
	assert.NoError(t, c.Context().Err())
}

func TestKubernetesCluster_isPaused(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "it is engaged")
	c, err := h.registry.Get(h.key("eu-1"))
	require.NoError(t, err)

	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Paused = true })
	kc := h.until("eu-1", reason(v1alpha1.SuspendedReason), "it is paused")
	<-c.Context().Done()
	assert.Equal(t, metav1.ConditionUnknown, condition(kc, v1alpha1.ReadyCondition).Status)
	assert.Equal(t, metav1.ConditionUnknown, condition(kc, v1alpha1.ClusterReachableCondition).Status, "it is not asked")
	assert.NotEmpty(t, kc.Status.UID)
	_, err = h.registry.Get(h.key("eu-1"))
	assert.EqualError(t, err, "cluster "+h.ns+"/eu-1 is not connected: its KubernetesCluster is paused")

	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Paused = false })
	h.until("eu-1", isReady, "it goes on")
}

// A shard serves what its selector matches, and releases what it no longer does.
func TestKubernetesCluster_ofAnotherShard(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "it is ours")
	c, err := h.registry.Get(h.key("eu-1"))
	require.NoError(t, err)
	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Labels[label] = "other" })
	<-c.Context().Done()
}

// Controllers of other processes connect, and write nothing.
func TestKubernetesCluster_connectOnly(t *testing.T) {
	h := newHub(t, options{connectOnly: true})
	h.add("eu-1", userCluster(t).Kubeconfig())
	require.Eventually(t, func() bool {
		_, err := h.registry.Get(h.key("eu-1"))
		return err == nil
	}, limit, often)
	kc := h.get("eu-1")
	assert.Empty(t, kc.Finalizers)
	assert.Empty(t, kc.Status.Conditions)
}

// C45: controllers of other processes use a cluster for as long as the inventory says that it is the
// one.
func TestKubernetesCluster_connectOnlyAsBound(t *testing.T) {
	h := newHub(t, options{connectOnly: true})
	h.add("eu-1", userCluster(t).Kubeconfig())
	c := h.engaged("eu-1")
	bind := func(name, uid string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"uid":"`+uid+`","boundAt":"2026-01-01T00:00:00.000000Z"}}`))
		require.NoError(t, h.Status().Patch(t.Context(), h.get(name), patch))
	}
	bind("eu-1", elsewhere)
	<-c.Context().Done()
	bind("eu-1", kubeSystemUID(t, userCluster(t)))
	h.engaged("eu-1")

	h.add("eu-2", userCluster(t).Kubeconfig())
	require.True(t, eventually(func() bool {
		state, _ := h.registry.State(h.key("eu-2"))
		return state.Contacted && !state.Engaged
	}), "only who keeps the inventory proves that it is the same")
	bind("eu-2", kubeSystemUID(t, userCluster(t)))
	h.engaged("eu-2")
}
