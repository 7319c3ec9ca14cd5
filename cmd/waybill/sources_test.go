package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/test/env"
)

// Credentials of the git server.
const (
	gitUser     = "reader"
	gitPassword = "password-that-nobody-may-see"
)

// sources are servers with what examples/ refers to, and a copy of examples/ with their
// addresses.
type sources struct {
	git  *env.GitServer
	repo *env.GitRepo
	dir  string // the copy of examples/
}

func newSources(t *testing.T) *sources {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	git, err := env.StartGitServer(env.GitOptions{Username: gitUser, Password: gitPassword})
	require.NoError(t, err)
	t.Cleanup(git.Stop)
	repo, err := git.CreateRepo(t.Context(), "examples")
	require.NoError(t, err)
	_, err = repo.CommitFS(t.Context(), "", os.DirFS("../../examples"))
	require.NoError(t, err)

	charts, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(charts.Stop)
	_, err = charts.Push("../../examples/charts/web")
	require.NoError(t, err)
	_, err = charts.Push("../../examples/charts/web", func(c *chart.Chart) {
		c.Metadata.Version, c.Metadata.AppVersion = "1.0.0", "1.28"
	})
	require.NoError(t, err)
	registry, err := env.StartRegistry(env.Access{})
	require.NoError(t, err)
	t.Cleanup(registry.Stop)
	_, err = registry.Push("../../examples/charts/widgets")
	require.NoError(t, err)

	s := &sources{git: git, repo: repo, dir: t.TempDir()}
	s.copyExamples(t, strings.NewReplacer(
		"https://git.example.com/platform/examples.git", repo.URL(),
		"https://charts.example.com", charts.URL(),
		"url: oci://registry.example.com/charts", "plainHTTP: true\n            url: "+registry.URL(),
	))
	s.writeCredentials(t)
	return s
}

func (s *sources) copyExamples(t *testing.T, addresses *strings.Replacer) {
	t.Helper()
	examples := os.DirFS("../../examples")
	require.NoError(t, fs.WalkDir(examples, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(examples, name)
		if err != nil {
			return err
		}
		target := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, []byte(addresses.Replace(string(content))), 0o600)
	}))
}

// writeCredentials fills the Secret of examples/ in, as its comment says.
func (s *sources) writeCredentials(t *testing.T) {
	t.Helper()
	ca, err := env.CA()
	require.NoError(t, err)
	file := filepath.Join(s.dir, "credentials", "git.yaml")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	secret := map[string]any{}
	require.NoError(t, yaml.Unmarshal(content, &secret))
	secret["stringData"] = map[string]any{"username": gitUser, "password": gitPassword, "ca.crt": string(ca)}
	content, err = yaml.Marshal(secret)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, content, 0o600))
}

// path returns a file of the copy of examples/.
func (s *sources) path(elements ...string) string {
	return filepath.Join(append([]string{s.dir}, elements...)...)
}
