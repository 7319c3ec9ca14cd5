package dashboard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// Who wrote what was applied, and why, is read from the repository, as text. What of it is wrong leads to its line.
func TestCommit_saysWhoWroteIt(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	server, err := env.StartGitServer(env.GitOptions{Username: "waybill", Password: "secret"})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	repo, err := server.CreateRepo(t.Context(), "team")
	require.NoError(t, err)
	_, err = repo.Commit(t.Context(), map[string]string{"web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page}\ndata: {x: new}\n"})
	require.NoError(t, err)
	_, err = repo.Git(t.Context(), "commit", "--quiet", "--amend", "--author", "Ada & Co <ada@example.com>", "--message", "Add <script>alert(1)</script>")
	require.NoError(t, err)
	_, err = repo.Git(t.Context(), "push", "--quiet", "--force", "origin", "HEAD")
	require.NoError(t, err)
	commit, err := repo.Git(t.Context(), "rev-parse", "HEAD")
	require.NoError(t, err)
	ca, err := env.CA()
	require.NoError(t, err)
	gs := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}, Spec: v1alpha1.GitSyncSpec{URL: repo.URL(), SecretRef: &v1alpha1.LocalReference{Name: "git"}}}
	gs.Status.Revision = "main@sha1:" + commit
	gs.Status.Problems = []v1alpha1.Problem{{
		ObjectReference: v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: ns, Name: "page"}, File: "web.yaml", Line: 1, Reason: "Refused", Message: "no",
	}}
	gs.Status.ProblemCount = 60
	none := gs.DeepCopy()
	none.Name, none.Spec.URL = "gone", "https://127.0.0.1:1/gone.git"
	c := create(t, api, gs, none)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "git"}, Data: map[string][]byte{"ca.crt": ca, "username": []byte("waybill"), "password": []byte("secret")}}
	require.NoError(t, c.Create(t.Context(), secret))
	b := open(t, api.RESTConfig(), ns)
	page := objectLink("", "", "gitsyncs", ns, "team")
	got := b.get(page + "/commit")
	assert.Contains(t, got.text(), "Add <script>alert(1)</script>")
	assert.Contains(t, got.text(), "Ada & Co")
	assert.NotContains(t, got.body, "<script>alert")
	assert.Contains(t, b.get(page).body, "and 59 more, which the status does not list")
	assert.Contains(t, b.get(page+"/manifests").body, "web.yaml", "what it renders to")
	assert.Contains(t, b.get(page+"/diff").text(), `User "system:serviceaccount:`+ns+`:default" cannot get resource "configmaps"`, "asked as who delivers")
	lost := b.get(objectLink("", "", "gitsyncs", ns, "gone") + "/commit").body
	assert.Contains(t, lost, "The author and the message are not known")
}
