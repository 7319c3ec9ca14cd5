package kubernetescluster_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/test/env"
)

// pretender is an API server that is another cluster than it reports to be.
type pretender struct {
	kubeconfig []byte
	// lieTo, unless empty, is the token that it lies to.
	lieTo string
	// mute is true if it does not tell which Secrets there are.
	mute atomic.Bool
}

// pretending stands before the API server of a cluster, and reports a UID that is not that of the
// cluster.
func pretending(t *testing.T, c *env.Cluster, uid string) *pretender {
	t.Helper()
	p := &pretender{}
	target, err := url.Parse(c.RESTConfig().Host)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1 // events of a watch are passed on at once
	proxy.Transport, err = rest.TransportFor(c.RESTConfig())
	require.NoError(t, err)
	ofHub := c.Name() == hubCluster(t).Name()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lies := strings.Contains(r.Header.Get("Authorization"), p.lieTo)
		r.Header.Del("Authorization")
		if lies && r.URL.Path == "/api/v1/namespaces/kube-system" {
			_, _ = fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, uid)
			return
		}
		if p.mute.Load() && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/kube-system/secrets") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if ofHub && r.Method != http.MethodGet && strings.HasPrefix(r.URL.Path, "/apis/apiextensions.k8s.io/") {
			query := r.URL.Query()
			query.Set("dryRun", metav1.DryRunAll) // the CRDs of the hub are those of other tests as well
			r.URL.RawQuery = query.Encode()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	p.kubeconfig = kubeconfigOf(t, &rest.Config{Host: server.URL, BearerToken: "first", TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
	return p
}

func kubeconfigOf(t *testing.T, config *rest.Config) []byte {
	t.Helper()
	kubeconfig, err := env.Kubeconfig("c", config)
	require.NoError(t, err)
	return kubeconfig
}

func paused(kc *v1alpha1.KubernetesCluster) { kc.Spec.Paused = true }

func unpause(kc *v1alpha1.KubernetesCluster) { kc.Spec.Paused = false }

// proofs are the Secrets that proofs leave behind.
func proofs(t *testing.T, c *env.Cluster) []string {
	t.Helper()
	list := &corev1.SecretList{}
	require.NoError(t, newClient(t, c.RESTConfig()).List(t.Context(), list, client.InNamespace(metav1.NamespaceSystem)))
	var names []string
	for _, secret := range list.Items {
		if strings.HasPrefix(secret.Name, "waybill-proof-") {
			names = append(names, secret.Name)
		}
	}
	return names
}

// engaged waits until the registry hands the cluster out.
func (h *hub) engaged(name string) *cluster.Cluster {
	h.t.Helper()
	var c *cluster.Cluster
	require.True(h.t, eventually(func() bool {
		found, err := h.registry.Get(h.key(name))
		c = found
		return err == nil
	}), "%s is not engaged", name)
	return c
}

// goesOn fails unless the KubernetesCluster still drives the cluster that it was engaged as.
func (h *hub) goesOn(name string, c *cluster.Cluster) {
	h.t.Helper()
	user := newClient(h.t, userCluster(h.t).RESTConfig())
	inst := install(h.t, user, userCluster(h.t).Namespace(h.t), "more")
	h.until(name, func(kc *v1alpha1.KubernetesCluster) bool {
		return drives(kc) && slices.ContainsFunc(kc.Status.Installations, func(i v1alpha1.InstallationSummary) bool { return i.Namespace == inst.Namespace })
	}, "it goes on")
	require.NoError(h.t, user.Delete(h.t.Context(), inst))
	assert.NoError(h.t, c.Context().Err(), "it was never interrupted")
}

// conflicts says whether a KubernetesCluster says that another one reports its UID.
func conflicts(kc *v1alpha1.KubernetesCluster) bool {
	return condition(kc, v1alpha1.UIDConflictCondition).Status == metav1.ConditionTrue
}

func apart(kc *v1alpha1.KubernetesCluster) bool { return drives(kc) && conflicts(kc) }

// C45: a server that reports the UID of a cluster is not accepted as it, however old its
// KubernetesCluster is, neither now nor after a restart; what was begun there is none of its business.
func TestKubernetesCluster_forgedUIDStopsNobody(t *testing.T) {
	h := newHub(t, options{})
	uid := kubeSystemUID(t, userCluster(t))
	h.add("a-older", pretending(t, hubCluster(t), uid).kubeconfig, paused)
	h.add("b-berlin", userCluster(t).Kubeconfig())
	h.until("b-berlin", drives, "it is alone")
	user := newClient(t, userCluster(t).RESTConfig())
	inst := install(t, user, userCluster(t).Namespace(t), "web")
	h.begun("b-berlin", map[string]string{"web": "1"})
	c := h.engaged("b-berlin")

	h.change("a-older", unpause)
	kc := h.until("a-older", conflicts, "it is not proved to be the same")
	assert.Equal(t, "UID "+uid+" is reported by KubernetesCluster "+h.key("b-berlin").String()+" as well, which is not proved to lead to the same cluster: "+
		"one API server pretends to be another, or a cluster was restored from a backup of another; each is used as a cluster of its own",
		condition(kc, v1alpha1.UIDConflictCondition).Message)
	assert.Equal(t, string(kc.UID), kc.Status.Store, "it is another cluster")
	assert.Empty(t, kc.Status.Definitions, "nothing was begun there")
	require.NotEmpty(t, h.get("b-berlin").Status.Definitions)
	require.NoError(t, user.Delete(t.Context(), inst))
	h.until("b-berlin", apart, "it is told of the other one")
	h.goesOn("b-berlin", c)
	assert.Empty(t, proofs(t, hubCluster(t)), "nothing is left behind")

	h.restart()
	h.until("a-older", apart, "it is another cluster still")
	h.goesOn("b-berlin", h.engaged("b-berlin"))

	require.NoError(t, h.Delete(t.Context(), h.get("a-older")))
	h.gone("a-older")
	h.until("b-berlin", func(kc *v1alpha1.KubernetesCluster) bool { return drives(kc) && !conflicts(kc) }, "it is alone again")
}

// C45: a server that reports the UID of a cluster before that is registered does not keep it from being
// used, whether or not it takes part in the proof.
func TestKubernetesCluster_squattedUIDStopsNobody(t *testing.T) {
	cases := map[string]struct {
		reason  string
		mute    bool
		message string
	}{
		"AnotherStore":  {reason: "the proof shows that there are two clusters", message: "not proved to lead to the same cluster: one API server"},
		"NothingProved": {reason: "it lets nobody read the proof", mute: true, message: "not proved to lead to the same cluster, since KubernetesCluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, options{})
			squatter := pretending(t, hubCluster(t), kubeSystemUID(t, userCluster(t)))
			squatter.mute.Store(tc.mute)
			h.add("a-squatter", squatter.kubeconfig)
			h.until("a-squatter", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.UID != "" }, "it is the first of that UID")

			h.add("b-berlin", userCluster(t).Kubeconfig())
			kc := h.until("b-berlin", func(kc *v1alpha1.KubernetesCluster) bool {
				return apart(kc) && strings.Contains(condition(kc, v1alpha1.UIDConflictCondition).Message, tc.message)
			}, tc.reason)
			assert.Equal(t, string(kc.UID), kc.Status.Store)
			h.goesOn("b-berlin", h.engaged("b-berlin"))
			h.until("a-squatter", conflicts, "it is told")

			h.add("c-team", userCluster(t).Kubeconfig())
			kc = h.until("c-team", yields, "it leads to the cluster of b-berlin")
			assert.Contains(t, condition(kc, v1alpha1.ReadyCondition).Message, "KubernetesCluster "+h.key("b-berlin").String()+" leads to the same cluster and comes first")
			assert.Empty(t, proofs(t, userCluster(t)), "nothing is left behind")

			h.restart()
			h.until("c-team", func(kc *v1alpha1.KubernetesCluster) bool {
				_, err := h.registry.Get(h.key("c-team"))
				return err == nil && yields(kc)
			}, "a proof lasts")
			h.goesOn("b-berlin", h.engaged("b-berlin"))
		})
	}
}

// C45: two that could not be distinguished are one cluster as soon as that is proved.
func TestKubernetesCluster_provedLater(t *testing.T) {
	h := newHub(t, options{})
	first := pretending(t, userCluster(t), kubeSystemUID(t, userCluster(t)))
	first.mute.Store(true)
	h.add("a-first", first.kubeconfig)
	h.until("a-first", drives, "it is alone")
	h.begun("a-first", map[string]string{"web": "1"})
	h.add("b-second", userCluster(t).Kubeconfig())
	h.until("b-second", apart, "nothing is proved")

	first.mute.Store(false)
	h.change("b-second", func(kc *v1alpha1.KubernetesCluster) {
		kc.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
	})
	kc := h.until("b-second", func(kc *v1alpha1.KubernetesCluster) bool { return yields(kc) && !conflicts(kc) }, "it is the same cluster")
	assert.Empty(t, kc.Status.Store)
	h.until("a-first", func(kc *v1alpha1.KubernetesCluster) bool { return drives(kc) && !conflicts(kc) }, "it came first")
}

// C45, C38: a server that reports the UID of the hub is not accepted as the hub, which has no
// KubernetesCluster here: without its kubeconfig it would be the hub.
func TestKubernetesCluster_isNotTheHubBecauseItSaysSo(t *testing.T) {
	h := newHub(t, options{})
	h.add("berlin", pretending(t, userCluster(t), kubeSystemUID(t, hubCluster(t))).kubeconfig)
	kc := h.until("berlin", reason(v1alpha1.UIDConflictReason), "its claim is not proved")
	assert.Contains(t, condition(kc, v1alpha1.ReadyCondition).Message, "which is that of the hub itself, and is not proved to lead to the same cluster")
	assert.Empty(t, kc.Status.UID)
	_, err := h.registry.Get(h.key("berlin"))
	require.ErrorIs(t, err, cluster.ErrNotEngaged)

	h.add("self", hubCluster(t).Kubeconfig())
	h.until("self", drives, "that is the hub")
}

// C45: who proves to lead to the same cluster is known as such, and does not take it from the one
// that was there first.
func TestKubernetesCluster_provedClaimLeavesTheIncumbent(t *testing.T) {
	h := newHub(t, options{})
	h.add("a-older", userCluster(t).Kubeconfig(), paused)
	h.add("b-berlin", userCluster(t).Kubeconfig())
	h.until("b-berlin", drives, "it is alone")
	c := h.engaged("b-berlin")

	h.change("a-older", unpause)
	kc := h.until("a-older", yields, "it was not there first")
	assert.Equal(t, kubeSystemUID(t, userCluster(t)), kc.Status.UID)
	assert.Contains(t, condition(kc, v1alpha1.ReadyCondition).Message, "KubernetesCluster "+h.key("b-berlin").String()+" leads to the same cluster and comes first")
	h.goesOn("b-berlin", c)
	assert.Empty(t, proofs(t, userCluster(t)), "nothing is left behind")

	h.restart()
	h.until("a-older", func(kc *v1alpha1.KubernetesCluster) bool {
		_, err := h.registry.Get(h.key("a-older"))
		return err == nil && yields(kc)
	}, "a proof lasts")
	h.goesOn("b-berlin", h.engaged("b-berlin"))
}

// C45: a user who lacks the rights for a proof is told which, and is known as soon as they are there.
func TestKubernetesCluster_claimWithoutRights(t *testing.T) {
	h := newHub(t, options{})
	limited, err := userCluster(t).AddUser(h.ns)
	require.NoError(t, err)
	user := newClient(t, userCluster(t).RESTConfig())
	grant := func(name string, rule rbacv1.PolicyRule) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.ns + name}, Rules: []rbacv1.PolicyRule{rule}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: h.ns + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: h.ns + name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: h.ns}},
		}
		for _, o := range []client.Object{role, binding} {
			require.NoError(t, user.Create(t.Context(), o))
			t.Cleanup(func() { _ = user.Delete(cleanup(t), o) })
		}
		userCluster(t).AwaitGranted(t, h.ns, "", rule)
	}
	grant("-contact", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}})
	h.add("a-berlin", userCluster(t).Kubeconfig())
	h.until("a-berlin", drives, "it is alone")
	h.add("b-team", kubeconfigOf(t, limited))
	kc := h.until("b-team", reason(v1alpha1.UIDConflictReason), "it proves nothing")
	assert.Contains(t, condition(kc, v1alpha1.ReadyCondition).Message,
		"its kubeconfig cannot create a Secret in namespace kube-system: the API server answers with 403 Forbidden")
	assert.True(t, kc.Status.Reachable, "it answers")
	h.until("a-berlin", drives, "it goes on")

	grant("-proof", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "delete"}})
	h.change("b-team", func(kc *v1alpha1.KubernetesCluster) {
		kc.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
	})
	h.until("b-team", yields, "it is the same cluster")
	assert.Empty(t, proofs(t, userCluster(t)))
}
