package env_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/registry"

	"waybill.dev/waybill/test/env"
)

// writeCharts writes a chart that depends on another one by file://.
func writeCharts(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n" +
			"dependencies:\n- name: base\n  version: 0.1.0\n  repository: file://../base\n",
		"web/templates/a.yaml":  "kind: ConfigMap\n",
		"base/Chart.yaml":       "apiVersion: v2\nname: base\nversion: 0.1.0\n",
		"base/templates/b.yaml": "kind: ConfigMap\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return filepath.Join(dir, "web")
}

func get(t *testing.T, client *http.Client, url, user, password string) (int, io.Reader) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if user != "" {
		request.SetBasicAuth(user, password)
	}
	response, err := client.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, response.Body
}

func TestHelmRepo_servesCharts(t *testing.T) {
	repo, err := env.StartHelmRepo(env.Access{Username: "flo", Password: "secret", TLS: true})
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	archive, err := repo.Push(writeCharts(t), func(c *chart.Chart) { c.Metadata.Version = "1.1.0" })
	require.NoError(t, err)
	assert.Equal(t, "web-1.1.0.tgz", archive)

	ca, err := env.CA()
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}

	code, _ := get(t, client, repo.URL()+"/index.yaml", "", "")
	assert.Equal(t, http.StatusUnauthorized, code)
	code, index := get(t, client, repo.URL()+"/index.yaml", "flo", "secret")
	assert.Equal(t, http.StatusOK, code)
	content, err := io.ReadAll(index)
	require.NoError(t, err)
	assert.Contains(t, string(content), repo.URL()+"/web-1.1.0.tgz")

	code, body := get(t, client, repo.URL()+"/"+archive, "flo", "secret")
	assert.Equal(t, http.StatusOK, code)
	loaded, err := loader.LoadArchive(body)
	require.NoError(t, err)
	require.Len(t, loaded.Dependencies(), 1, "the dependency is inside")
	assert.Len(t, repo.Requests(), 3)
}

func TestRegistry_servesCharts(t *testing.T) {
	for name, access := range map[string]env.Access{
		"open over HTTP":          {},
		"with a user over HTTP":   {Username: "flo", Password: "secret"},
		"with a user, over HTTPS": {Username: "flo", Password: "secret", TLS: true},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := env.StartRegistry(access)
			require.NoError(t, err)
			t.Cleanup(server.Stop)
			digest, err := server.Push(writeCharts(t))
			require.NoError(t, err)
			assert.Regexp(t, "^sha256:", digest)
		})
	}
}

func TestRegistry_refusesStrangers(t *testing.T) {
	server, err := env.StartRegistry(env.Access{Username: "flo", Password: "secret"})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	digest, err := server.Push(writeCharts(t))
	require.NoError(t, err)

	ref := server.Address() + "/charts/web:1.0.0"
	stranger, err := registry.NewClient(registry.ClientOptPlainHTTP())
	require.NoError(t, err)
	_, err = stranger.Pull(ref)
	require.ErrorContains(t, err, "credential")

	friend, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptBasicAuth("flo", "secret"))
	require.NoError(t, err)
	pulled, err := friend.Pull(ref)
	require.NoError(t, err)
	assert.Equal(t, digest, pulled.Manifest.Digest)
}
