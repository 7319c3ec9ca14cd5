package applicationinstallation

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/test/env"
)

// gate is a server that holds back all requests until it is opened.
type gate struct {
	*httptest.Server
	reached, open chan struct{}
	once          sync.Once
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	behind, err := url.Parse(target)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(behind)
	g := &gate{reached: make(chan struct{}), open: make(chan struct{})}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.once.Do(func() { close(g.reached) })
		<-g.open
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

// gitOrigin is a chart in the folder a of a repository that holds these files.
func gitOrigin(t *testing.T, files map[string]string) (origin, *env.GitServer) {
	t.Helper()
	server, err := env.StartGitServer(env.GitOptions{})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	repo, err := server.CreateRepo(t.Context(), "apps")
	require.NoError(t, err)
	commit, err := repo.Commit(t.Context(), files)
	require.NoError(t, err)
	ca, err := env.CA()
	require.NoError(t, err)
	source := &v1alpha1.GitSource{Remote: repo.URL(), Path: "a", Ref: &v1alpha1.GitReference{Branch: "main", Commit: commit}}
	return origin{
		version:     &v1alpha1.ApplicationVersion{Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Git: source}}},
		credentials: &content.Content{Data: map[string][]byte{"ca.crt": ca}, Hash: "one"},
	}, server
}

func newFetcher(t *testing.T) *Reconciler {
	t.Helper()
	store, err := git.NewStore(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	charts, err := chart.NewCache(t.TempDir())
	require.NoError(t, err)
	return &Reconciler{Git: store, Charts: charts}
}

// K54: in a fleet many install one version at the same time. When one of them is deleted while the
// chart is being fetched, the others get it all the same, by the same fetch.
func TestFetchChartFromGit_isNotGivenUpForAll(t *testing.T) {
	charts, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(charts.Stop)
	_, err = charts.Push("../../../examples/charts/mysql")
	require.NoError(t, err)
	gate := newGate(t, charts.URL())
	source, server := gitOrigin(t, map[string]string{
		"a/Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies:\n- {name: mysql, version: 1.x, repository: '" + gate.URL + "'}\n" +
			"- {name: b, version: 1.0.0, repository: 'file://../b'}\n",
		"b/Chart.yaml": "apiVersion: v2\nname: b\nversion: 1.0.0\n",
	})
	r := newFetcher(t)
	ctx, deleted := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := r.fetchChartFromGit(ctx, source); left <- err }()
	<-gate.reached
	asked := len(server.Requests())
	deleted()
	require.ErrorIs(t, <-left, context.Canceled)

	stayed := make(chan error, 1)
	go func() { _, err := r.fetchChartFromGit(t.Context(), source); stayed <- err }()
	close(gate.open)
	require.NoError(t, <-stayed)
	assert.Len(t, server.Requests(), asked, "git is not asked again")
}

// K44: a commit that is named in full is not looked up on the server, which therefore does not see
// who asks for it.
func TestFetchChartFromGit_doesNotLendCredentials(t *testing.T) {
	source, _ := gitOrigin(t, map[string]string{"a/Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\n"})
	r := newFetcher(t)
	_, err := r.fetchChartFromGit(t.Context(), source)
	require.NoError(t, err)

	source.credentials = nil
	_, err = r.fetchChartFromGit(t.Context(), source)
	require.Error(t, err)
	assert.Equal(t, v1alpha1.GitAuthenticationFailedReason, reconcile.ReasonOf(err), "the certificate of the server is not trusted")
}

// C59: the authorities of the credentials are not silently replaced by none.
func TestFetchChart_needsTheAuthoritiesThatItNames(t *testing.T) {
	source := &v1alpha1.HelmSource{
		URL: "https://127.0.0.1:1", ChartName: "web", ChartVersion: "1.0.0", CASecretRef: &v1alpha1.LocalReference{Name: "authorities"},
	}
	_, err := newFetcher(t).fetchChart(t.Context(), origin{
		version:     &v1alpha1.ApplicationVersion{Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Helm: source}}},
		authorities: &content.Content{Data: map[string][]byte{"tls.crt": []byte("x")}},
	})
	require.Error(t, err)
	assert.Equal(t, v1alpha1.InvalidSecretReason, reconcile.ReasonOf(err))
	assert.Contains(t, err.Error(), "caSecretRef authorities")
	assert.Contains(t, err.Error(), "lacks the key ca.crt")
}
