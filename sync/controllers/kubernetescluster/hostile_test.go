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
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lies := strings.Contains(r.Header.Get("Authorization"), p.lieTo)
		r.Header.Del("Authorization")
		if lies && r.URL.Path == "/api/v1/namespaces/kube-system" {
			_, _ = fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, uid)
			return
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

// C45: a server that reports the UID of a cluster is not taken for it, however old its
// KubernetesCluster is, neither now nor after a restart.
func TestKubernetesCluster_forgedUIDStopsNobody(t *testing.T) {
	h := newHub(t, options{})
	uid := kubeSystemUID(t, userCluster(t))
	h.add("a-older", pretending(t, hubCluster(t), uid).kubeconfig, paused)
	h.add("b-berlin", userCluster(t).Kubeconfig())
	h.until("b-berlin", drives, "it is alone")
	c := h.engaged("b-berlin")

	h.change("a-older", unpause)
	kc := h.until("a-older", reason(v1alpha1.UIDConflictReason), "its claim is not proved")
	assert.Equal(t, "it reports UID "+uid+", which is that of KubernetesCluster "+h.key("b-berlin").String()+", and is not proved to lead to the same cluster: "+
		"a Secret that was written through the one to namespace kube-system is not found through the other, so that they are two clusters; nothing is done through it: "+
		"correct the kubeconfig, or delete the KubernetesCluster that is not what it reports to be", condition(kc, v1alpha1.ReadyCondition).Message)
	assert.Empty(t, kc.Status.UID, "it is bound to nothing")
	_, err := h.registry.Get(h.key("a-older"))
	require.ErrorIs(t, err, cluster.ErrNotEngaged)
	h.goesOn("b-berlin", c)
	assert.Empty(t, proofs(t, hubCluster(t)), "nothing is left behind")

	h.restart()
	h.until("a-older", func(kc *v1alpha1.KubernetesCluster) bool {
		state, _ := h.registry.State(h.key("a-older"))
		return state.Contacted && reason(v1alpha1.UIDConflictReason)(kc)
	}, "it is refused again")
	h.goesOn("b-berlin", h.engaged("b-berlin"))

	require.NoError(t, h.Delete(t.Context(), h.get("a-older")))
	h.gone("a-older")
}

// C45, C38: a server that reports the UID of the hub is not taken for the hub, which has no
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

// C45: whoever lacks the rights for a proof is told which, and is known as soon as they are there.
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
