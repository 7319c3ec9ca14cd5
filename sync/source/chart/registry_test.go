package chart_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"

	"waybill.dev/waybill/sync/source/chart"
)

// The registry logs every request, and only to the global logger.
func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// ociRegistry is a real registry that counts what it is asked for.
type ociRegistry struct {
	host string
	// ca vouches for its certificate, and client trusts it; nil without TLS.
	ca     []byte
	client *http.Client

	mu       sync.Mutex
	requests []string
}

// newRegistry starts a registry; one that wants credentials has TLS.
func newRegistry(t *testing.T, user, password string) *ociRegistry {
	t.Helper()
	r := &ociRegistry{}
	config := &configuration.Configuration{}
	config.Storage = configuration.Storage{"inmemory": map[string]any{}}
	config.Catalog.MaxEntries = 100
	config.HTTP.Secret = "for tests"
	if user != "" {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "htpasswd")
		require.NoError(t, os.WriteFile(file, []byte(user+":"+string(hash)), 0o600))
		config.Auth = configuration.Auth{"htpasswd": {"realm": "test", "path": file}}
	}
	app := handlers.NewApp(t.Context(), config)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.requests = append(r.requests, req.Method+" "+req.URL.Path)
		r.mu.Unlock()
		app.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	r.host = server.Listener.Addr().String()
	if user == "" {
		server.Start()
		return r
	}
	server.StartTLS()
	r.ca, r.client = authority(server), server.Client()
	return r
}

func (r *ociRegistry) push(t *testing.T, archive []byte, ref string, opts ...helmregistry.ClientOption) {
	t.Helper()
	opts = append(opts, helmregistry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "none.json")))
	if r.client == nil {
		opts = append(opts, helmregistry.ClientOptPlainHTTP())
	} else {
		opts = append(opts, helmregistry.ClientOptHTTPClient(r.client))
	}
	client, err := helmregistry.NewClient(opts...)
	require.NoError(t, err)
	_, err = client.Push(archive, r.host+"/"+ref, helmregistry.PushOptStrictMode(false))
	require.NoError(t, err)
	r.asked()
}

func (r *ociRegistry) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.requests = nil }()
	return slices.Clone(r.requests)
}

// K17, K18, K5
func TestGet_fromRegistry(t *testing.T) {
	reg := newRegistry(t, "", "")
	reg.push(t, chartArchive(t, "web", "1.2.3+build.1"), "team/web:1.2.3+build.1")
	cache := newCache(t)
	ref := chart.Reference{URL: "oci://" + reg.host + "/team", Name: "web", Version: "1.2.3+build.1"}
	cred := chart.Credentials{PlainHTTP: true}

	got, err := cache.Get(t.Context(), ref, cred)
	require.NoError(t, err)
	assert.Equal(t, "web", got.Name())
	assert.NotEmpty(t, reg.asked())
	again, err := cache.Get(t.Context(), ref, cred)
	require.NoError(t, err)
	assert.Same(t, got, again)
	assert.Empty(t, reg.asked())

	ref.Version = "v1.2.3+build.1"
	spelled, err := cache.Get(t.Context(), ref, cred)
	require.NoError(t, err, "v1.2.3 and 1.2.3 are one version")
	assert.Same(t, got, spelled)
	for _, request := range reg.asked() {
		assert.NotContains(t, request, "/blobs/", "the archive is fetched once per digest")
	}

	ref.Version = "2.0.0"
	_, err = cache.Get(t.Context(), ref, cred)
	require.ErrorIs(t, err, chart.ErrNotFound)
	assert.Contains(t, err.Error(), "it has the versions 1.2.3+build.1")
	ref.Name = "nothing"
	_, err = cache.Get(t.Context(), ref, cred)
	require.ErrorIs(t, err, chart.ErrNotFound)
}

// K18
func TestGet_fromPrivateRegistry(t *testing.T) {
	reg := newRegistry(t, "reader", "s3cret")
	reg.push(t, chartArchive(t, "web", "1.2.3"), "team/web:1.2.3", helmregistry.ClientOptBasicAuth("reader", "s3cret"))
	ref := chart.Reference{URL: "oci://" + reg.host + "/team", Name: "web", Version: "1.2.3"}
	config := func(host string) []byte {
		return fmt.Appendf(nil, `{"auths":{%q:{"username":"reader","password":"s3cret"}}}`, host)
	}
	cases := map[string]struct {
		reason string
		cred   chart.Credentials
		is     error
	}{
		"Basic":     {"user and password", chart.Credentials{Username: "reader", Password: "s3cret"}, nil},
		"Config":    {"registryConfigFile", chart.Credentials{RegistryConfig: config(reg.host)}, nil},
		"OtherHost": {"an entry is for its host", chart.Credentials{RegistryConfig: config("example.com")}, chart.ErrAuth},
		"Anonymous": {"none", chart.Credentials{}, chart.ErrAuth},
		"Wrong":     {"wrong password", chart.Credentials{Username: "reader", Password: "guess"}, chart.ErrAuth},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.cred.CAFile = reg.ca
			_, err := newCache(t).Get(t.Context(), ref, tc.cred)
			if tc.is == nil {
				require.NoError(t, err, tc.reason)
				return
			}
			require.ErrorIs(t, err, tc.is, tc.reason)
			assert.NotContains(t, err.Error(), "s3cret")
		})
	}
}

// K17: without TLS there is a registry only where plainHTTP says so, and it gets no credentials that
// are for others.
func TestGet_fromARegistryWithoutTLS(t *testing.T) {
	reg := newRegistry(t, "", "")
	reg.push(t, chartArchive(t, "web", "1.2.3"), "team/web:1.2.3")
	ref := chart.Reference{URL: "oci://" + reg.host + "/team", Name: "web", Version: "1.2.3"}
	_, err := newCache(t).Get(t.Context(), ref, chart.Credentials{})
	require.ErrorIs(t, err, chart.ErrUnreachable, "TLS is spoken")

	others := []byte(`{"auths":{"example.com":{"username":"reader","password":"s3cret"}}}`)
	_, err = newCache(t).Get(t.Context(), ref, chart.Credentials{PlainHTTP: true, RegistryConfig: others})
	require.NoError(t, err)
}

// K7: public repositories list archives that lie in a registry.
func TestGet_indexMayPointIntoARegistry(t *testing.T) {
	reg := newRegistry(t, "", "")
	reg.push(t, chartArchive(t, "web", "1.2.3"), "team/web:1.2.3")
	repo := newRepository(t, httptest.NewServer)
	repo.add("web", "1.2.3", nil)
	repo.index["web"][0]["urls"] = []string{"oci://" + reg.host + "/team/web:1.2.3"}
	got, err := newCache(t).Get(t.Context(), chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.3"}, chart.Credentials{PlainHTTP: true})
	require.NoError(t, err)
	assert.Equal(t, "web", got.Name())
}

// K54
func TestFromFS_fetchesDependenciesFromARegistry(t *testing.T) {
	reg := newRegistry(t, "", "")
	for _, v := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		reg.push(t, chartArchive(t, "web", v), "team/web:"+v)
	}
	tree := fstestChart(chartYAML("a", "1.0.0") + "dependencies: [{name: web, version: 1.x, repository: 'oci://" + reg.host + "/team'}]\n")
	got, err := newCache(t).FromFS(t.Context(), chart.Tree{Open: opened(tree)}, chart.Credentials{PlainHTTP: true})
	require.NoError(t, err)
	assert.Equal(t, "1.1.0", got.Dependencies()[0].Metadata.Version)
}

func TestGet_registryHoldsSomethingElse(t *testing.T) {
	reg := newRegistry(t, "", "")
	store := memory.New()
	manifest, err := oras.PackManifest(t.Context(), store, oras.PackManifestVersion1_1, "application/vnd.example+type", oras.PackManifestOptions{})
	require.NoError(t, err)
	require.NoError(t, store.Tag(t.Context(), manifest, "1.0.0"))
	target, err := remote.NewRepository(reg.host + "/team/web")
	require.NoError(t, err)
	target.PlainHTTP = true
	_, err = oras.Copy(t.Context(), store, "1.0.0", target, "1.0.0", oras.DefaultCopyOptions)
	require.NoError(t, err)

	_, err = newCache(t).Get(t.Context(), chart.Reference{URL: "oci://" + reg.host + "/team", Name: "web", Version: "1.0.0"}, chart.Credentials{PlainHTTP: true})
	require.ErrorIs(t, err, chart.ErrInvalidChart)
	assert.Contains(t, err.Error(), "is not a Helm chart")
}

// scriptedRegistry answers what the test says, where a real one would refuse to hold it.
type scriptedRegistry struct {
	host     string
	manifest string
	blobs    map[string][]byte

	mu       sync.Mutex
	requests []string
}

// newScriptedRegistry returns a registry whose one chart, team/web 1.0.0, is a layer of that digest
// and size.
func newScriptedRegistry(t *testing.T, layer string, size int) *scriptedRegistry {
	t.Helper()
	r := &scriptedRegistry{blobs: map[string][]byte{}}
	r.manifest = fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":%q},"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		helmregistry.ConfigMediaType, helmregistry.ChartLayerMediaType, layer, size)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, req.Method+" "+req.URL.Path)
		if req.URL.Path == "/v2/team/web/manifests/1.0.0" {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Content-Length", strconv.Itoa(len(r.manifest)))
			_, _ = w.Write([]byte(r.manifest))
			return
		}
		blob, ok := r.blobs[strings.TrimPrefix(req.URL.Path, "/v2/team/web/blobs/")]
		if !ok {
			http.NotFound(w, req)
			return
		}
		_, _ = w.Write(blob)
	}))
	t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

func (r *scriptedRegistry) chart() chart.Reference {
	return chart.Reference{URL: "oci://" + r.host + "/team", Name: "web", Version: "1.0.0"}
}

// A proxy in front of a registry may answer with its login page.
func TestGet_registryAnswersWithALoginPage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/login" {
			http.Redirect(w, req, "/login", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("<!DOCTYPE html><html>Sign in</html>"))
	}))
	defer server.Close()
	ref := chart.Reference{URL: "oci://" + strings.TrimPrefix(server.URL, "http://") + "/team", Name: "web", Version: "1.0.0"}
	_, err := newCache(t).Get(t.Context(), ref, chart.Credentials{PlainHTTP: true})
	require.ErrorIs(t, err, chart.ErrAuth)
	assert.ErrorContains(t, err, "the server answered with a web page instead of a chart or an index: if a login is needed")
}

// A manifest within the size that registries accept has no room for a million layers, which take a hundred
// times its size.
func TestGet_registryNamesAMillionLayers(t *testing.T) {
	r := newScriptedRegistry(t, "sha256:x", 1)
	r.manifest = `{"schemaVersion":2,"layers":[` + strings.Repeat("{},", 1_000_000) + `{}]}`
	_, err := newCache(t).Get(t.Context(), r.chart(), chart.Credentials{PlainHTTP: true})
	require.ErrorIs(t, err, chart.ErrInvalidChart)
	assert.ErrorContains(t, err, "more than 10000 values")
}

// K18, K44: to know the digest of another's private chart is not to have it.
func TestGet_registryNamesWhatOnlyOthersHold(t *testing.T) {
	data := chartArchive(t, "web", "1.0.0")
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	private, other := newScriptedRegistry(t, digest, len(data)), newScriptedRegistry(t, digest, len(data))
	private.blobs[digest] = data
	cache := newCache(t)
	_, err := cache.Get(t.Context(), private.chart(), chart.Credentials{PlainHTTP: true})
	require.NoError(t, err)

	_, err = cache.Get(t.Context(), other.chart(), chart.Credentials{PlainHTTP: true})
	require.ErrorIs(t, err, chart.ErrNotFound)
	others := []byte(`{"auths":{"example.com":{"username":"u","password":"p"}}}`)
	_, err = cache.Get(t.Context(), private.chart(), chart.Credentials{PlainHTTP: true, RegistryConfig: others})
	require.NoError(t, err)
	assert.Equal(t, []string{"GET /v2/team/web/manifests/1.0.0", "GET /v2/team/web/blobs/" + digest}, private.requests[2:],
		"what one may see with some credentials must be shown again to others")
}

// K17: what a registry calls its archive never becomes a path, and never ends the process.
func TestGet_registryNamesNoDigest(t *testing.T) {
	cases := map[string]struct{ reason, digest string }{
		"Path":      {"it leads out of the cache", "sha256:../../victim"},
		"NoDigest":  {"the client of the registry fetches it all the same", "x"},
		"Algorithm": {"archives are kept by SHA-256", "sha512:" + strings.Repeat("0", 128)},
		"Short":     {"half a digest", "sha256:" + strings.Repeat("0", 32)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := chartArchive(t, "web", "1.0.0")
			reg := newScriptedRegistry(t, tc.digest, len(data))
			reg.blobs[tc.digest] = data
			dir := t.TempDir()
			victim := filepath.Join(dir, "victim")
			require.NoError(t, os.WriteFile(victim, []byte("not ours"), 0o600))
			cache, err := chart.NewCache(filepath.Join(dir, "cache"))
			require.NoError(t, err)

			_, err = cache.Get(t.Context(), reg.chart(), chart.Credentials{PlainHTTP: true})
			require.ErrorIs(t, err, chart.ErrInvalidChart, tc.reason)
			assert.Contains(t, err.Error(), "is not a SHA-256")
			assert.FileExists(t, victim)
		})
	}
}
