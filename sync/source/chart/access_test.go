package chart_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/chart"
)

// K18, K44: a chart that one user fetched with credentials is not served to another without them.
func TestGet_cacheDoesNotLendCredentials(t *testing.T) {
	repo := newRepository(t, httptest.NewTLSServer)
	repo.user, repo.password = "reader", "s3cret-word"
	repo.add("web", "1.2.3", chartArchive(t, "web", "1.2.3"))
	cache, ca := newCache(t), authority(repo.Server)
	ref := chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.3"}

	_, err := cache.Get(t.Context(), ref, chart.Credentials{Username: "reader", Password: "s3cret-word", CAFile: ca})
	require.NoError(t, err)
	for _, wrong := range []chart.Credentials{{CAFile: ca}, {Username: "reader", Password: "other-word", CAFile: ca}} {
		_, err = cache.Get(t.Context(), ref, wrong)
		require.ErrorIs(t, err, chart.ErrAuth)
		assert.NotContains(t, err.Error(), "word")
	}
}

// K18
func TestGet_credentialsStayWithTheirHost(t *testing.T) {
	var seen []string
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		_, _ = w.Write(chartArchive(t, "web", "1.2.3"))
	}))
	defer elsewhere.Close()

	cases := map[string]struct {
		reason  string
		arrange func(*repository)
	}{
		"Redirect": {
			reason: "another port of the same host is another origin",
			arrange: func(r *repository) {
				r.intercept = func(w http.ResponseWriter, req *http.Request) bool {
					if req.URL.Path == "/index.yaml" {
						return false
					}
					http.Redirect(w, req, elsewhere.URL+"/stolen.tgz", http.StatusFound)
					return true
				}
			},
		},
		"AbsoluteURL": {
			reason:  "an index may point anywhere",
			arrange: func(r *repository) { r.index["web"][0]["urls"] = []string{elsewhere.URL + "/web.tgz"} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen = nil
			repo := newRepository(t, httptest.NewTLSServer)
			repo.user, repo.password = "reader", "secret"
			repo.add("web", "1.2.3", chartArchive(t, "web", "1.2.3"))
			tc.arrange(repo)
			_, err := newCache(t).Get(t.Context(), chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.3"},
				chart.Credentials{Username: "reader", Password: "secret", CAFile: authority(repo.Server)})
			require.NoError(t, err)
			assert.Equal(t, []string{""}, seen, tc.reason)
		})
	}
}

// K18: admission refuses what it sees; files, and the dependencies of charts, it does not.
func TestGet_credentialsNeverGoOverHTTP(t *testing.T) {
	const password = "s3cret-word"
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	get := func(url string) func(chart.Credentials) error {
		return func(cred chart.Credentials) error {
			_, err := newCache(t).Get(t.Context(), chart.Reference{URL: url, Name: "web", Version: "1.0.0"}, cred)
			return err
		}
	}
	dependency := func(version string) func(chart.Credentials) error {
		return func(cred chart.Credentials) error {
			tree := fstestChart(chartYAML("a", "1.0.0") + "dependencies: [{name: web, version: '" + version + "', repository: '" + server.URL + "'}]\n")
			_, err := newCache(t).FromFS(t.Context(), chart.Tree{Open: opened(tree)}, cred)
			return err
		}
	}
	basic := chart.Credentials{Username: "reader", Password: password}
	plain := chart.Credentials{Username: "reader", Password: password, PlainHTTP: true}
	config := chart.Credentials{
		RegistryConfig: []byte(`{"auths":{"` + host + `":{"username":"reader","password":"` + password + `"}}}`), PlainHTTP: true,
	}
	cases := map[string]struct {
		reason  string
		get     func(chart.Credentials) error
		cred    chart.Credentials
		instead string
	}{
		"Repository":      {"user and password of a repository", get(server.URL), basic, "give its https:// address"},
		"Registry":        {"user and password of a registry", get("oci://" + host + "/team"), plain, "leave out plainHTTP"},
		"RegistryConfig":  {"an entry for the registry", get("oci://" + host + "/team"), config, "leave out plainHTTP"},
		"Dependency":      {"the index that a chart names", dependency("1.x"), basic, "give its https:// address"},
		"ExactDependency": {"no range to look up", dependency("1.0.0"), basic, "give its https:// address"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked = nil
			err := tc.get(tc.cred)
			require.ErrorIs(t, err, chart.ErrInvalidReference, tc.reason)
			require.ErrorContains(t, err, "credentials are never sent over http, as "+host+" would get them; "+tc.instead)
			assert.NotContains(t, err.Error(), password)
			assert.Empty(t, asked, tc.reason)
		})
	}
}

func TestGet_redirectToPlainHTTPIsRefused(t *testing.T) {
	plain := newRepository(t, httptest.NewServer)
	secure := newRepository(t, httptest.NewTLSServer)
	secure.intercept = func(w http.ResponseWriter, req *http.Request) bool {
		http.Redirect(w, req, plain.URL+req.URL.Path, http.StatusFound)
		return true
	}
	_, err := newCache(t).Get(t.Context(), chart.Reference{URL: secure.URL, Name: "web", Version: "1.0.0"}, chart.Credentials{InsecureSkipTLS: true})
	require.ErrorIs(t, err, chart.ErrUnreachable)
	assert.Contains(t, err.Error(), "redirect from https to http refused")
	assert.Empty(t, plain.asked())
}

func TestGet_secureIndexVouchesForPlainArchives(t *testing.T) {
	plain := newRepository(t, httptest.NewServer)
	plain.add("web", "1.0.0", chartArchive(t, "web", "1.0.0"))
	secure := newRepository(t, httptest.NewTLSServer)
	secure.add("web", "1.0.0", chartArchive(t, "web", "1.0.0"))
	secure.index["web"][0]["urls"] = []string{plain.URL + "/web-1.0.0.tgz"}
	get := func() error {
		_, err := newCache(t).Get(t.Context(), chart.Reference{URL: secure.URL, Name: "web", Version: "1.0.0"}, chart.Credentials{InsecureSkipTLS: true})
		return err
	}
	require.NoError(t, get(), "the digest comes over https")
	plain.asked()

	delete(secure.index["web"][0], "digest")
	err := get()
	require.ErrorIs(t, err, chart.ErrInvalidChart)
	assert.Contains(t, err.Error(), "http:// address and no digest")
	assert.Empty(t, plain.asked())
}

// K18, C59
func TestGet_trustsOnlyTheGivenAuthority(t *testing.T) {
	repo := newRepository(t, httptest.NewTLSServer)
	repo.add("web", "1.2.3", chartArchive(t, "web", "1.2.3"))
	ca := authority(repo.Server)
	ref := chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.3"}
	cache := newCache(t)

	_, err := cache.Get(t.Context(), ref, chart.Credentials{})
	require.ErrorIs(t, err, chart.ErrUnreachable)
	assert.Contains(t, err.Error(), "certificate is not trusted")

	for _, cred := range []chart.Credentials{{CAFile: ca}, {InsecureSkipTLS: true}} {
		_, err = cache.Get(t.Context(), ref, cred)
		require.NoError(t, err)
	}
}

// K18, K55, C59
func TestCredentialsFromSecret(t *testing.T) {
	cases := map[string]struct {
		reason string
		data   map[string]string
		want   chart.Credentials
		fails  string
	}{
		"Empty":          {reason: "anonymous access is fine"},
		"Basic":          {reason: "user and password", data: map[string]string{"username": "u", "password": "p"}, want: chart.Credentials{Username: "u", Password: "p"}},
		"RegistryConfig": {reason: "the Docker configuration of a registry, under its other key", data: map[string]string{"registryConfigFile": `{"auths":{}}`}, want: chart.Credentials{RegistryConfig: []byte(`{"auths":{}}`)}},
		"DockerSecret":   {reason: "a pull secret as it is", data: map[string]string{".dockerconfigjson": `{"auths":{}}`}, want: chart.Credentials{RegistryConfig: []byte(`{"auths":{}}`)}},
		"OtherKeys":      {reason: "a Secret may serve git as well", data: map[string]string{"identity": "key"}},
		"HalfBasic":      {reason: "a typo in a key must not end in anonymous access", data: map[string]string{"username": "u"}, fails: "both or none"},
		"BadConfig":      {reason: "no JSON", data: map[string]string{"registryConfigFile": "topsecret"}, fails: "registryConfigFile of the Secret is not a valid Docker config.json"},
		"BadCA":          {reason: "no PEM", data: map[string]string{"ca.crt": "topsecret"}, fails: "ca.crt of the Secret has no PEM certificate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range tc.data {
				data[k] = []byte(v)
			}
			got, err := chart.CredentialsFromSecret(data)
			if tc.fails == "" {
				require.NoError(t, err, tc.reason)
				assert.Equal(t, tc.want, got, tc.reason)
				return
			}
			require.ErrorIs(t, err, chart.ErrInvalidReference, tc.reason)
			assert.Contains(t, err.Error(), tc.fails)
			assert.NotContains(t, err.Error(), "topsecret")
		})
	}
}

// C59: an authority that is missing must not end in a message that asks for it.
func TestAuthoritiesFromSecret(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	ca := authority(server)
	got, err := chart.AuthoritiesFromSecret(map[string][]byte{"ca.crt": ca})
	require.NoError(t, err)
	assert.Equal(t, ca, got)
	for says, data := range map[string]map[string][]byte{
		"lacks the key ca.crt":                        {"tls.crt": ca},
		"ca.crt of the Secret has no PEM certificate": {"ca.crt": []byte("topsecret")},
	} {
		_, err := chart.AuthoritiesFromSecret(data)
		require.ErrorIs(t, err, chart.ErrInvalidReference)
		assert.Contains(t, err.Error(), says)
		assert.NotContains(t, err.Error(), "topsecret")
	}
}

// K16, K17
func TestGet_refusesUnusableReferences(t *testing.T) {
	cases := map[string]chart.Reference{
		"must begin with":          {URL: "ftp://host", Name: "web", Version: "1.0.0"},
		"names no host":            {URL: "https:///charts", Name: "web", Version: "1.0.0"},
		"holds credentials":        {URL: "https://user:hidden@host", Name: "web", Version: "1.0.0"},
		"chart name is empty":      {URL: "https://host", Version: "1.0.0"},
		"version of chart web":     {URL: "https://host", Name: "web"},
		"not a repository of a re": {URL: "oci://host/UPPER", Name: "web", Version: "1.0.0"},
	}
	for message, ref := range cases {
		t.Run(message, func(t *testing.T) {
			_, err := newCache(t).Get(t.Context(), ref, chart.Credentials{})
			require.ErrorIs(t, err, chart.ErrInvalidReference)
			assert.Contains(t, err.Error(), message)
			assert.NotContains(t, err.Error(), "hidden")
		})
	}
}
