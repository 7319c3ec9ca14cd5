package dashboard

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/installation"
)

// standIn has a folder stand for a repository, which may be at a host that no test contacts. No page was opened yet.
func standIn(t *testing.T, s *server, url string, files map[string]string) {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	known, err := installation.OpenSources(installation.Local{url: folder}, true)
	require.NoError(t, err)
	s.sources.known, s.sources.swept = known, time.Now()
}

// attempted is a revision of a commit.
var attempted = "main@sha1:" + strings.Repeat("a", 40)

// The page of a GitSync says what is held, how far each cluster is, and what becomes of files that are removed.
func TestSync_saysWhatItDelivers(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	gs := syncOf(ns)
	gs.Status.AttemptedRevision = attempted
	gs.Status.Held = []v1alpha1.Hold{{ObjectReference: v1alpha1.ObjectReference{Kind: "Deployment", Namespace: ns, Name: "shop"}, Cluster: "berlin", Rollback: "before-sale", Since: metav1.Now()}}
	gs.Status.Clusters = []v1alpha1.GitSyncClusterStatus{
		{Name: "berlin", Ready: true, Revision: attempted},
		{Name: "oslo", Ready: true, Revision: "main@sha1:" + strings.Repeat("b", 40)},
		{Name: "vienna", Reason: "Unreachable", Message: "its API server does not answer"},
	}
	keeps := syncOf(ns)
	keeps.Name, keeps.Spec.Prune = "keeps", ptr.To(false)
	create(t, api, gs, keeps)
	b := open(t, api.RESTConfig(), ns)
	got := b.get(objectLink("", "", "gitsyncs", ns, "team")).text()
	for _, text := range []string{
		"Clusters: 1 of 3 have " + attempted, "its API server does not answer", objectLink("", "", "kubernetesclusters", ns, "vienna"),
		"Held by rollbacks", "Deployment " + ns + "/shop", "before-sale",
		"Removed files", "are deleted. Events Pruned say which",
	} {
		assert.Contains(t, got, text)
	}
	got = b.get(objectLink("", "", "gitsyncs", ns, "keeps")).text()
	assert.Contains(t, got, "Objects that are removed from the repository stay: spec.prune is false.")
	assert.NotContains(t, got, "Held by rollbacks")
}

// A dashboard in the hub compares with the rights of the viewer: its own right to impersonate is not lent to those who may act as a
// ServiceAccount, and nothing is read by it that they may not read.
func TestDiff_lendsNoRights(t *testing.T) {
	api := hub(t)
	ns, system := api.Namespace(t), api.Namespace(t)
	gs := syncOf(ns)
	gs.Spec.ServiceAccountName = "deployer"
	c := create(t, api, gs)
	require.NoError(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "page"}, Data: map[string]string{"x": "not-yours"}}))
	configMaps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}}
	actAs := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}}
	allow(t, api, ns, "system:serviceaccount:"+ns+":deployer", configMaps)
	allow(t, api, ns, "viewer-"+ns, mayRead, actAs)
	allow(t, api, system, "viewer-"+ns, configMaps) // with the id of the hub
	name := "dashboard-" + ns
	config, err := api.AddUser(name)
	require.NoError(t, err)
	allow(t, api, "", name, mayRead, actAs, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users", "groups"}, Verbs: []string{"impersonate"}})
	s := openShared(t, config, func(o *Options) { o.SystemNamespace = system })
	standIn(t, s.server, gs.Spec.URL, map[string]string{"web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page, namespace: " + ns + "}\ndata: {x: new}\n"})
	got := s.signIn("viewer-" + ns).page(objectLink("", "", "gitsyncs", ns, "team") + "/diff")
	require.Equal(t, http.StatusOK, got.status, got.text())
	assert.NotContains(t, got.text(), "not-yours")
	assert.Contains(t, got.text(), "with your rights, and not with those of ServiceAccount "+ns+"/deployer")
	assert.Contains(t, got.text(), `User "viewer-`+ns+`" cannot get resource "configmaps"`)
}
