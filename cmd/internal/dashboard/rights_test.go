package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// A tenant sees their own, on every page, and a group's where they are in one.
func TestShared_aTenantSeesTheirOwn(t *testing.T) {
	api := hub(t)
	mine, ours, other := api.Namespace(t), api.Namespace(t), api.Namespace(t)
	reader(t, api, mine)
	c := create(t, api, cluster(mine, "berlin", installed("web-"+mine, "0.9.0", metav1.ConditionTrue)), cluster(ours, "rome"), cluster(other, "paris"),
		&v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: "berlin-sync"}, Spec: v1alpha1.GitSyncSpec{URL: "https://example.com/a.git"}},
		&v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "paris-sync"}, Spec: v1alpha1.GitSyncSpec{URL: "https://example.com/b.git"}})
	meta := metav1.ObjectMeta{Namespace: ours, Name: "team"}
	rule := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"kubernetesclusters"}, Verbs: []string{"list"}}
	require.NoError(t, c.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}))
	require.NoError(t, c.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "team"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "team-" + ours},
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "waits-" + ours},
		},
	}))
	api.AwaitGranted(t, "waits-"+ours, ours, rule)

	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web-" + mine}, Spec: v1alpha1.ApplicationDefinitionSpec{
		Logo:     &v1alpha1.Logo{Format: "svg+xml", Data: []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)},
		Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: chartTemplate()}}, DefaultVersion: "1.0.0",
	}}
	create(t, api, definition)
	publisher, err := api.AddUser("publisher", "system:masters")
	require.NoError(t, err)
	logo := open(t, publisher, mine).get("/logos/" + definition.Name)
	require.Equal(t, http.StatusOK, logo.status)
	assert.Contains(t, logo.header.Get("Content-Security-Policy"), "default-src 'none'; style-src 'unsafe-inline'; sandbox", "it runs nothing, and loads nothing")

	s := openShared(t, account(t, api))
	b := s.signIn(mine, "team-"+ours)
	assert.Equal(t, http.StatusNotFound, b.get("/logos/"+definition.Name).status, "who may not list definitions does not see their logos")
	for _, path := range []string{"/", "/search?q=i", "/gitsyncs", "/search?q=ari"} {
		body := b.page(path).body
		assert.NotContains(t, body, "paris", path)
		assert.NotContains(t, body, other, path)
	}
	fleet := b.page("/").body
	assert.Contains(t, fleet, "berlin")
	assert.Contains(t, fleet, "rome", "of the group")
	assert.Contains(t, fleet, "0.9.0")
	assert.NotContains(t, fleet, "the default version is", "the definition says so, which is not theirs to see")
	assert.Contains(t, fleet, "those of the namespaces in which you may are shown")
	assert.Contains(t, b.page("/gitsyncs").body, "berlin-sync")
	assert.NotContains(t, s.signIn(mine).page("/").body, "rome", "the same user in no group")
	assert.Contains(t, b.page("/catalog").body, "No ApplicationDefinitions are shown. You may not list applicationdefinitions")
	assert.Equal(t, http.StatusForbidden, b.page(objectLink("", "", "kubernetesclusters", other, "paris")).status)
	assert.Equal(t, http.StatusOK, b.page(objectLink("", "", "kubernetesclusters", mine, "berlin")).status)

	stranger := s.signIn("stranger-" + mine)
	assert.Contains(t, stranger.page("/").body, "No KubernetesClusters are shown")
	assert.NotContains(t, stranger.page("/").body, "berlin")
}

// What withdrawn rights allowed is gone from a page that is open within reviewAgain, without a reload.
func TestShared_rightsWithdrawn(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	reader(t, api, ns)
	c := create(t, api, cluster(ns, "berlin"))
	s := openShared(t, account(t, api))
	b := s.signIn(ns)
	require.Contains(t, b.page("/").body, "berlin")
	events, _ := b.stream(url.Values{"kind": {v1alpha1.KubernetesClusterKind}})
	require.NoError(t, c.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: ns}}))
	api.AwaitRevoked(t, ns, ns, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"kubernetesclusters"}, Verbs: []string{"list"}})
	assert.Contains(t, b.page("/").body, "berlin", "an answer counts for a while")
	assert.Empty(t, events)
	s.clock.SetTime(s.clock.Now().Add(reviewAgain))
	assert.Equal(t, "change", <-events, "the page is told")
	assert.NotContains(t, b.page("/").body, "berlin")
}

// A viewer is not notified of changes in namespaces that they may not list.
func TestShared_changesOfOthersAreNotTold(t *testing.T) {
	api := hub(t)
	mine, other := api.Namespace(t), api.Namespace(t)
	reader(t, api, mine)
	own, foreign := cluster(mine, "berlin"), cluster(other, "paris")
	c := create(t, api, own, foreign)
	s := openShared(t, account(t, api))
	b := s.signIn(mine)
	to, end, err := s.server.inventory.feed.subscribe(&viewer{own: true}, []string{v1alpha1.KubernetesClusterKind})
	require.NoError(t, err)
	defer end()
	events, _ := b.stream(url.Values{"kind": {v1alpha1.KubernetesClusterKind}})
	label := func(object client.Object) {
		before := object.DeepCopyObject().(client.Object)
		object.SetLabels(map[string]string{"changed": "1"})
		require.NoError(t, c.Patch(t.Context(), object, client.MergeFrom(before)))
	}
	by, ok := s.server.door.(*oidcDoor)
	require.True(t, ok)
	page := &told{server: s.server, visit: visit{viewer: by.viewers.of(mine, nil)}}
	assert.False(t, page.concerned(t.Context(), map[touch]bool{{v1alpha1.KubernetesClusterKind, other}: true}))
	assert.True(t, page.concerned(t.Context(), map[touch]bool{{v1alpha1.KubernetesClusterKind, other}: true, {v1alpha1.KubernetesClusterKind, mine}: true}))
	assert.True(t, page.concerned(t.Context(), map[touch]bool{{}: true}), "whatever it is")
	label(foreign)
	<-to.woken
	assert.Equal(t, map[touch]bool{{v1alpha1.KubernetesClusterKind, other}: true}, to.take())
	label(own)
	assert.Equal(t, "change", <-events)
	<-to.woken
	assert.Empty(t, events, "one change was theirs")
}

// While the hub's API server is away, pages say so, and have what they had.
func TestShared_hubAwayAndBack(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	reader(t, api, ns)
	create(t, api, cluster(ns, "berlin"))
	gate, err := env.NewGate(api.Address())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	s := openShared(t, env.Via(gate, account(t, api)))
	b := s.signIn(ns)
	require.Contains(t, b.page("/").body, "berlin")
	events, _ := b.stream(url.Values{"kind": {v1alpha1.KubernetesClusterKind}})

	gate.Shut()
	assert.Equal(t, "change", <-events, "the page is told")
	s.clock.SetTime(s.clock.Now().Add(2 * reviewAgain))
	got := b.page("/")
	assert.Contains(t, got.body, "The hub does not answer")
	assert.Contains(t, got.body, "berlin", "rights cannot be withdrawn while it is away")
	require.Equal(t, http.StatusBadGateway, b.page(objectLink("", "", "kubernetesclusters", ns, "berlin")).status)
	s.clock.SetTime(s.clock.Now().Add(reviewLost))
	assert.NotContains(t, b.page("/").body, "berlin", "but not for ever")

	require.NoError(t, gate.Open())
	require.Eventually(t, func() bool {
		body := b.page("/").body
		s.clock.SetTime(s.clock.Now().Add(time.Second))
		return strings.Contains(body, "berlin") && !strings.Contains(body, "does not answer")
	}, limit, often, "it comes back by itself")
}
