package dashboard

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// kubeconfigOf returns a Secret with a kubeconfig.
func kubeconfigOf(namespace, name string, content []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"kubeconfig": content}}
}

// In user clusters, a viewer is who they are in the hub, where an administrator has allowed that; those who may read the kubeconfig
// in the hub have its rights; all others see what the hub knows. Each cluster of this test is the hub again.
func TestReach_userClusters(t *testing.T) {
	api := hub(t)
	mine, other, kubeconfigs := api.Namespace(t), api.Namespace(t), api.Namespace(t)
	reader(t, api, mine)
	given, bare := cluster(mine, "given"), cluster(mine, "bare")
	for _, k := range []*v1alpha1.KubernetesCluster{given, bare} {
		k.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "of-waybill"}
	}
	installation := func(namespace string) *v1alpha1.ApplicationInstallation {
		return &v1alpha1.ApplicationInstallation{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
		}
	}
	own, err := env.Kubeconfig("dashboard", account(t, api))
	require.NoError(t, err)
	c := create(t, api, given, bare, installation(mine), installation(other))
	require.NoError(t, c.Create(t.Context(), kubeconfigOf(mine, "of-waybill", api.Kubeconfig())))
	require.NoError(t, c.Create(t.Context(), kubeconfigOf(kubeconfigs, mine+".given", own)))
	s := openShared(t, api.RESTConfig(), func(o *Options) { o.KubeconfigNamespace = kubeconfigs })
	b := s.signIn(mine)

	assert.Equal(t, http.StatusOK, b.page(objectLink(mine, "given", "applicationinstallations", mine, "web")).status, "with their own rights there")
	assert.Equal(t, http.StatusForbidden, b.page(objectLink(mine, "given", "applicationinstallations", other, "web")).status, "and no more, whatever the kubeconfig may")
	got := b.page(objectLink(mine, "bare", "applicationinstallations", mine, "web"))
	assert.Equal(t, http.StatusForbidden, got.status)
	assert.Contains(t, got.body, "you may not read its kubeconfig in the hub, and the dashboard was given none to act as you there")
	assert.Contains(t, b.page(objectLink("", "", "kubernetesclusters", mine, "bare")).body, "Installations", "what the hub knows is there")
	keeper := s.signIn(keeperOf(t, api, mine))
	assert.Equal(t, http.StatusOK, keeper.page(objectLink(mine, "bare", "applicationinstallations", other, "web")).status, "who may read the kubeconfig has its rights anyway")
	assert.Equal(t, http.StatusForbidden, keeper.page(objectLink(mine, "given", "applicationinstallations", other, "web")).status, "but is themselves where the dashboard has its own")
	stranger := s.signIn("stranger-" + mine)
	got = stranger.page(objectLink(mine, "given", "applicationinstallations", mine, "web"))
	assert.Equal(t, http.StatusForbidden, got.status)
	assert.Contains(t, got.body, "forbidden", "whether there is such a cluster is not theirs to know")
}

// What is in a user cluster takes no right to more than its KubernetesCluster: the others of the namespace are not read.
func TestReach_byTheRightToGetOneCluster(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	given := cluster(ns, "given")
	given.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "of-waybill"}
	installation := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
	}
	c := create(t, api, given, cluster(ns, "other"), installation)
	require.NoError(t, c.Create(t.Context(), kubeconfigOf(ns, "of-waybill", api.Kubeconfig())))
	user := "getter-" + ns
	allow(t, api, ns, user,
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"kubernetesclusters"}, ResourceNames: []string{"given"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"of-waybill"}, Verbs: []string{"get"}},
	)
	b := openShared(t, account(t, api)).signIn(user)
	got := b.page(objectLink(ns, "given", "applicationinstallations", ns, "web"))
	assert.Equal(t, http.StatusOK, got.status, got.text())
	assert.Contains(t, b.page(objectLink(ns, "other", "applicationinstallations", ns, "web")).text(), "forbidden")
	keeper := openShared(t, account(t, api)).signIn(keeperOf(t, api, ns))
	assert.Contains(t, keeper.page(objectLink(ns, "none", "applicationinstallations", ns, "web")).text(), "no KubernetesCluster none in the hub")
}

// keeperOf returns a user who may read everything in a namespace, Secrets included.
func keeperOf(t *testing.T, api *env.Cluster, namespace string) string {
	t.Helper()
	name := "keeper-" + namespace
	allow(t, api, namespace, name, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
	return name
}

// A cluster that hangs holds up nothing but its own part, which says when it was last seen.
func TestReach_clusterThatHangs(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	reader(t, api, ns)
	gate, err := env.NewGate(api.Address())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	require.NoError(t, gate.Hang())
	own, err := env.Kubeconfig("dashboard", env.Via(gate, account(t, api)))
	require.NoError(t, err)
	k := cluster(ns, "berlin")
	k.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "none"}
	k.Status.Reachable = true // the hub has not noticed yet
	k.Status.LastSeen = &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)}
	c := create(t, api, k)
	require.NoError(t, c.Create(t.Context(), kubeconfigOf(ns, ns+".berlin", own)))
	page := objectLink(ns, "berlin", "applicationinstallations", ns, "web")
	within := func(limit time.Duration) *shared {
		config := api.RESTConfig()
		config.Timeout = limit
		return openShared(t, config, func(o *Options) { o.KubeconfigNamespace = ns })
	}
	hung := within(5 * time.Second).signIn(ns).page(page)
	assert.Equal(t, http.StatusBadGateway, hung.status)
	assert.Contains(t, hung.body, "does not answer in time")
	assert.Contains(t, hung.body, "The hub has last seen it at 2026-01-02 03:04:05")

	s := within(time.Hour)
	waiting, other := s.signIn(ns), s.signIn(ns)
	done := make(chan answer, 1)
	go func() { done <- waiting.page(page) }()
	assert.Contains(t, other.page("/").body, "berlin")
	assert.Empty(t, done, "nothing else waits for it")
	gate.Close()
	assert.Equal(t, http.StatusBadGateway, (<-done).status)
}

// Who may write a kubeconfig that the dashboard uses has it ask a server of theirs, and nothing else: that cannot lead it to
// another server, whose answers they would read on a page. The clusters of a seed are bounded, too.
func TestReach_redirectsAreNotFollowed(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	asked := make(chan string, 100)
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		_, _ = io.WriteString(w, "credentials of the node")
	}))
	t.Cleanup(inside.Close)
	theirs := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside.URL+"/latest/meta-data", http.StatusFound)
	}))
	t.Cleanup(theirs.Close)
	kubeconfig, err := env.Kubeconfig("theirs", &rest.Config{Host: theirs.URL, BearerToken: "x", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: theirs.Certificate().Raw}),
	}})
	require.NoError(t, err)
	k, seed := cluster(ns, "berlin"), cluster(ns, "seed")
	k.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "theirs", Key: "kubeconfig"}
	seed.Spec.KubeconfigSecretRef, seed.Spec.Role = &v1alpha1.SecretKeyReference{Name: "seed", Key: "kubeconfig"}, v1alpha1.ClusterRoleSeed
	c := create(t, api, k, seed)
	require.NoError(t, c.Create(t.Context(), kubeconfigOf(ns, "theirs", kubeconfig)))
	require.NoError(t, c.Create(t.Context(), kubeconfigOf(ns, "seed", api.Kubeconfig())))
	s := openShared(t, account(t, api))
	keeper := keeperOf(t, api, ns)
	b := s.signIn(keeper)
	for _, path := range []string{
		objectLink(ns, "berlin", "applicationinstallations", ns, "web"), logsLink(client.ObjectKeyFromObject(k), ns, "web"), "/live?object=" + objectLink(ns, "berlin", "gitsyncs", ns, "web"),
	} {
		got := b.page(path)
		assert.Equal(t, http.StatusBadGateway, got.status, path)
		assert.Contains(t, got.text(), "with a redirect, which is not followed", path)
		assert.NotContains(t, got.text(), "credentials of the node", path)
	}
	by, ok := s.server.door.(*oidcDoor)
	require.True(t, ok)
	drives, err := by.viewers.of(keeper, nil).hub.UserCluster(t.Context(), client.ObjectKeyFromObject(seed))
	require.NoError(t, err)
	behind, err := drives.UserCluster(t.Context(), client.ObjectKeyFromObject(k))
	require.NoError(t, err)
	as, err := behind.Client()
	require.NoError(t, err)
	assert.ErrorContains(t, as.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "x"}, &corev1.Secret{}), "with a redirect, which is not followed")
	assert.Empty(t, asked)
}
