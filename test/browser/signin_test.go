package browser

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

// startShared starts waybill-dashboard in front of a hub, at which people sign in with a provider, and returns where it is.
func startShared(t testing.TB, hub *env.Cluster, args ...string) (dashboard, *env.IdentityProvider) {
	t.Helper()
	provider, err := env.StartIdentityProvider()
	require.NoError(t, err)
	t.Cleanup(provider.Stop)
	ca, err := env.CA()
	require.NoError(t, err)
	kubeconfig, err := env.Kubeconfig("hub", account(t, hub))
	require.NoError(t, err)
	listen, err := env.FreeAddress()
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listen)
	require.NoError(t, err)
	bin, err := program.Build(t.Context(), program.Dashboard)
	require.NoError(t, err)
	address := "https://localhost:" + port
	process, err := program.Start(t.Context(), program.Options{
		Name: program.Dashboard, Bin: bin, Kubeconfig: file(t, kubeconfig),
		Args: append([]string{
			"--url=" + address, "--listen=" + listen, "--oidc-issuer-url=" + provider.URL(), "--oidc-client-id=" + env.IdentityClientID,
			"--oidc-client-secret-file=" + file(t, []byte(env.IdentityClientSecret)), "--oidc-ca-file=" + file(t, ca),
			"--oidc-username-prefix=-", "--oidc-groups-claim=groups", "--session-key-file=" + file(t, []byte(strings.Repeat("k", 40))),
		}, args...),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if log, err := process.Log(); t.Failed() && err == nil {
			t.Log(program.Tail(log, 30))
		}
		_ = process.Kill() // the test may have done so
	})
	return dashboard{Process: process, address: address}, provider
}

// file returns the name of a file with that content.
func file(t testing.TB, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, content, 0o600))
	return name
}

// viewer returns a user who may read our kinds in a namespace of the hub that has a cluster, and what allows it.
func viewer(t testing.TB, hub *env.Cluster, namespace, cluster string) (name string, binding *rbacv1.RoleBinding) {
	t.Helper()
	removeAll(t, hub, &v1alpha1.KubernetesCluster{}, namespace)
	name = "viewer-of-" + namespace
	rule := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	binding = &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	c := clientOf(t, hub.RESTConfig())
	require.NoError(t, c.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}))
	require.NoError(t, c.Create(t.Context(), binding))
	create(t, c, &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}})
	rule.Resources = []string{"kubernetesclusters"}
	hub.AwaitGranted(t, name, namespace, rule)
	return name, binding
}

// account returns the user of the hub that the dashboard is, with the rights that the chart gives it.
func account(t testing.TB, hub *env.Cluster) *rest.Config {
	t.Helper()
	const name = "waybill-dashboard"
	config, err := hub.AddUser(name)
	require.NoError(t, err)
	c := clientOf(t, hub.RESTConfig())
	own := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}
	others := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users", "groups"}, Verbs: []string{"impersonate"}}
	meta := metav1.ObjectMeta{Name: name}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{own, others}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		},
	} {
		require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), object)))
	}
	own.Resources = []string{"gitsyncs"}
	hub.AwaitGranted(t, name, "", own, others)
	return config
}

// A user signs in with the provider, sees what they may under their name, and signs out.
func TestSignIn_andOut(t *testing.T) {
	w := fleet(t)
	ns := w.hub.Namespace(t)
	name, _ := viewer(t, w.hub, ns, "vienna-of-jane")
	d, provider := startShared(t, w.hub)
	provider.As(map[string]any{"sub": name})
	b := newTab(t, d)
	assert.Equal(t, http.StatusOK, b.visit("/search?q=vienna-of"))
	b.awaitText("vienna-of-jane")
	assert.Equal(t, "/search?q=vienna-of", eval[string](b, "location.pathname + location.search"), "where they wanted to")
	assert.Contains(t, b.text(), name)
	b.check()
	b.visit("/")
	b.awaitText("vienna-of-jane")
	assert.NotContains(t, b.text(), "helsinki", "it is another's")
	b.click("header .user button")
	b.awaitText("You are signed out")
	b.check()
	b.visit("/")
	b.awaitText("vienna-of-jane")
	assert.Equal(t, 2, provider.SignedIn())
}

// A page whose session ends says so, keeps what it had, asks for no more, and leads back in.
func TestSignIn_sessionEnds(t *testing.T) {
	w := fleet(t)
	ns := w.hub.Namespace(t)
	name, _ := viewer(t, w.hub, ns, "vienna-of-jim")
	d, provider := startShared(t, w.hub, "--session-duration=1m")
	provider.As(map[string]any{"sub": name})
	b := newTab(t, d)
	b.expects("Failed to load resource")
	var streams streams
	require.NoError(t, chromedp.Listen(b.ctx, streams.note))
	call(b, network.Enable, network.EnableParams{})
	b.visit("/")
	b.awaitText("vienna-of-jim")
	b.awaitText("Your session has ended.")
	assert.Contains(t, b.text(), "vienna-of-jim", "what it had")
	require.Eventually(t, func() bool { return streams.open() == 0 }, limit, often, "the stream has ended")
	b.check()
	b.click("#connection a")
	b.await(`!document.body.innerText.includes("Your session has ended") && document.body.innerText.includes("vienna-of-jim")`)
	assert.Equal(t, 2, provider.SignedIn(), "they have signed in again")
}

// What withdrawn rights allowed is gone from a page that is open, without a reload.
func TestSignIn_rightsWithdrawn(t *testing.T) {
	w := fleet(t)
	ns := w.hub.Namespace(t)
	name, binding := viewer(t, w.hub, ns, "vienna-of-joe")
	d, provider := startShared(t, w.hub)
	provider.As(map[string]any{"sub": name})
	b := newTab(t, d)
	b.visit("/")
	b.awaitText("vienna-of-joe")
	require.NoError(t, clientOf(t, w.hub.RESTConfig()).Delete(t.Context(), binding))
	b.awaitNoText("vienna-of-joe")
	b.awaitText("You may not list kubernetesclusters")
	b.check()
}

// A cookie that the dashboard has not sealed is none: who has one is sent to the provider, and sees nothing if that refuses them.
func TestSignIn_forgedCookie(t *testing.T) {
	w := fleet(t)
	d, provider := startShared(t, w.hub)
	provider.Refuse("access_denied")
	b := newTab(t, d)
	b.expects("403")
	yes := true
	host, err := url.Parse(d.address)
	require.NoError(t, err)
	for _, forged := range []string{"forged", `eyJuIjoiYWRtaW4iLCJ1IjoiMjA5OS0wMS0wMVQwMDowMDowMFoifQ`} {
		call(b, network.SetCookie, network.SetCookieParams{
			Name: "__Host-waybill", Value: forged, URL: host.String(), Path: "/", Secure: &yes, HTTPOnly: &yes,
		})
		assert.Equal(t, http.StatusForbidden, b.visit("/"))
		b.awaitText("access_denied")
		assert.NotContains(t, b.text(), "helsinki")
	}
	b.check()
}
