package git_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/pkg/gittestserver"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
)

// server is a real git server over https, with ssh on demand.
type server struct {
	*gittestserver.GitServer
	// ca vouches for its certificate.
	ca []byte
	// listings and fetches count what clients asked for.
	listings, fetches atomic.Int32

	mu     sync.Mutex
	before func(w http.ResponseWriter, r *http.Request) http.ResponseWriter
}

func newServer(t *testing.T) *server {
	t.Helper()
	g, err := gittestserver.NewTempGitServer()
	require.NoError(t, err)
	s := &server{GitServer: g}
	t.Cleanup(func() {
		s.StopHTTP()
		require.NoError(t, os.RemoveAll(s.Root()))
	})
	g.AddHTTPMiddlewares(s.observe)
	g.KeyDir(t.TempDir())
	return s
}

func (s *server) startHTTPS(t *testing.T) *server {
	t.Helper()
	cert, key := localhostCertificate(t)
	s.ca = cert
	require.NoError(t, s.StartHTTPS(cert, key, cert, "127.0.0.1"))
	return s
}

func newHTTPS(t *testing.T) *server {
	t.Helper()
	return newServer(t).startHTTPS(t)
}

// observe counts requests, and lets a test interfere with them.
func (s *server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/info/refs"):
			s.listings.Add(1)
		case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
			s.fetches.Add(1)
		}
		s.mu.Lock()
		before := s.before
		s.mu.Unlock()
		if before != nil {
			w = before(w, r)
		}
		if w != nil {
			next.ServeHTTP(w, r)
		}
	})
}

// interfere calls f before each request; with nil it no longer does. A nil
// writer from f means that f has answered.
func (s *server) interfere(f func(w http.ResponseWriter, r *http.Request) http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// localhostCertificate borrows the self-signed certificate of net/http/httptest.
func localhostCertificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	lender := httptest.NewTLSServer(http.NotFoundHandler())
	defer lender.Close()
	pair := lender.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// origin is a repository on a server, with a work tree that pushes to it.
type origin struct {
	name string
	bare string
	work string
}

// newOrigin creates a repository with one commit on main.
func (s *server) newOrigin(t *testing.T, files map[string]string) *origin {
	t.Helper()
	o := &origin{name: "team/manifests.git", work: t.TempDir()}
	o.bare = filepath.Join(s.Root(), o.name)
	runGit(t, "", "init", "--quiet", "--bare", "--initial-branch=main", o.bare)
	runGit(t, "", "clone", "--quiet", o.bare, o.work)
	o.git(t, "checkout", "--quiet", "-B", "main")
	o.push(t, files)
	return o
}

// git runs git in the work tree.
func (o *origin) git(t *testing.T, args ...string) string {
	t.Helper()
	return runGit(t, o.work, args...)
}

// configure changes the configuration of the server's repository.
func (o *origin) configure(t *testing.T, key, value string) {
	t.Helper()
	runGit(t, o.bare, "config", key, value)
}

// push commits files to the current branch, pushes it, and returns the commit.
// A file with the content "" is removed.
func (o *origin) push(t *testing.T, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(o.work, name)
		if content == "" {
			require.NoError(t, os.Remove(path))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return o.pushAll(t)
}

// pushAll commits what is in the work tree.
func (o *origin) pushAll(t *testing.T) string {
	t.Helper()
	o.git(t, "add", "--all")
	o.git(t, "commit", "--quiet", "--allow-empty", "--message", "change")
	o.git(t, "push", "--quiet", "--force", "origin", "HEAD")
	return o.git(t, "rev-parse", "HEAD")
}

// https returns where the repository is, for anonymous users.
func (o *origin) https(s *server) git.Repository {
	return git.Repository{URL: s.HTTPAddress() + "/" + o.name, Credentials: git.Credentials{CAFile: s.ca}}
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

func newStore(t *testing.T, opts ...git.Option) *git.Store {
	t.Helper()
	return newStoreIn(t, t.TempDir(), opts...)
}

func newStoreIn(t *testing.T, dir string, opts ...git.Option) *git.Store {
	t.Helper()
	s, err := git.NewStore(dir, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// openRef resolves and opens; the tree is closed with the test.
func openRef(t *testing.T, s *git.Store, repo git.Repository, ref git.Ref) *git.Tree {
	t.Helper()
	rev, err := s.Resolve(t.Context(), repo, ref)
	require.NoError(t, err)
	tree, err := s.Open(t.Context(), repo, rev)
	require.NoError(t, err)
	t.Cleanup(tree.Close)
	return tree
}
