package env_test

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"github.com/go-git/go-git/v5/storage/memory"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

func startGit(t *testing.T, o env.GitOptions) (*env.GitServer, *env.GitRepo) {
	t.Helper()
	server, err := env.StartGitServer(o)
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	repo, err := server.CreateRepo(t.Context(), "platform")
	require.NoError(t, err)
	return server, repo
}

// clone clones with the machine's git, and returns the folder or what git said.
func clone(t *testing.T, address string, environment ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	ca, err := env.CA()
	require.NoError(t, err)
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(caFile, ca, 0o600))
	cmd := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--depth=1", address, dir)
	cmd.Env = append(os.Environ(), append(environment, "GIT_SSL_CAINFO="+caFile, "GIT_TERMINAL_PROMPT=0")...)
	out, err := cmd.CombinedOutput()
	t.Log(string(out))
	return dir, err
}

func withUser(t *testing.T, address, user, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.User = url.UserPassword(user, password)
	return u.String()
}

func TestGitServer_https(t *testing.T) {
	_, repo := startGit(t, env.GitOptions{Username: "flo", Password: "secret"})
	_, err := repo.Commit(t.Context(), map[string]string{"apps/a.yaml": "a: 1\n"})
	require.NoError(t, err)

	dir, err := clone(t, withUser(t, repo.URL(), "flo", "secret"))
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(dir, "apps", "a.yaml"))
	require.NoError(t, err)
	assert.Equal(t, "a: 1\n", string(content))

	_, err = clone(t, withUser(t, repo.URL(), "flo", "wrong"))
	assert.Error(t, err, "another password is refused")
	_, err = clone(t, repo.URL())
	assert.Error(t, err, "no password is refused")
}

func TestGitServer_ssh(t *testing.T) {
	server, repo := startGit(t, env.GitOptions{SSH: true})
	other, _ := startGit(t, env.GitOptions{SSH: true})
	_, err := repo.Commit(t.Context(), map[string]string{"a.yaml": "a: 1\n"})
	require.NoError(t, err)
	hosts := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(hosts, server.KnownHosts(), 0o600))
	list := func(identity []byte) error {
		auth, err := ssh.NewPublicKeys("git", identity, "")
		require.NoError(t, err)
		auth.HostKeyCallback, err = ssh.NewKnownHostsCallback(hosts)
		require.NoError(t, err)
		remote := git.NewRemote(memory.NewStorage(), &config.RemoteConfig{Name: "origin", URLs: []string{repo.SSHURL()}})
		_, err = remote.ListContext(t.Context(), &git.ListOptions{Auth: auth})
		return err
	}
	require.NoError(t, list(server.Identity()))
	require.Error(t, list(other.Identity()), "another key is refused")
	require.NoError(t, os.WriteFile(hosts, other.KnownHosts(), 0o600))
	assert.Error(t, list(server.Identity()), "an unknown host is not talked to")
}

func TestGitServer_goesAwayAndLies(t *testing.T) {
	server, repo := startGit(t, env.GitOptions{})
	server.Shut()
	_, err := clone(t, repo.URL())
	require.Error(t, err, "no server listens")

	require.NoError(t, server.Open())
	_, err = clone(t, repo.URL())
	require.NoError(t, err, "back at the same address")

	server.Intercept(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	})
	_, err = clone(t, repo.URL())
	assert.Error(t, err)
	requests := server.Requests()
	assert.Equal(t, "/platform.git/info/refs", requests[len(requests)-1].Path, "what is lied about is counted")
}

func TestGitRepo_history(t *testing.T) {
	_, repo := startGit(t, env.GitOptions{})
	first, err := repo.CommitFS(t.Context(), "apps", fstest.MapFS{"a/a.yaml": {Data: []byte("a")}, "b.yaml": {Data: []byte("b")}})
	require.NoError(t, err)
	require.NoError(t, repo.Tag(t.Context(), "v1.0.0"))

	second, err := repo.Delete(t.Context(), "apps/a")
	require.NoError(t, err)
	amended, err := repo.Amend(t.Context(), map[string]string{"c.yaml": "c"})
	require.NoError(t, err)
	require.NoError(t, repo.Branch(t.Context(), "next"))
	_, err = repo.Commit(t.Context(), nil)
	require.NoError(t, err)

	served := func(ref string) string {
		out, err := repo.Git(t.Context(), "ls-remote", "origin", ref)
		require.NoError(t, err)
		return out
	}
	assert.Contains(t, served("refs/heads/main"), amended, "the branch was moved by force")
	assert.Contains(t, served("refs/tags/v1.0.0^{}"), first)
	assert.NotEqual(t, second, amended)
	files, err := repo.Git(t.Context(), "ls-tree", "-r", "--name-only", amended)
	require.NoError(t, err)
	assert.Equal(t, "apps/b.yaml\nc.yaml", files)
}

func TestGate_hangs(t *testing.T) {
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	require.NoError(t, repo.Hang())

	impatient := &http.Client{Timeout: 200 * time.Millisecond}
	_, err = impatient.Get(repo.URL() + "/index.yaml")
	require.ErrorContains(t, err, "Client.Timeout", "connected, and no answer")

	require.NoError(t, repo.Open())
	response, err := http.DefaultClient.Get(repo.URL() + "/index.yaml")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusOK, response.StatusCode)
}
