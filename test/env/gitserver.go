package env

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fluxcd/gitkit"
	"github.com/fluxcd/pkg/gittestserver"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// GitOptions defines how a git server is reached: always by HTTPS, and optionally by SSH.
type GitOptions struct {
	// Username and Password, if set, are required over HTTPS, as in Access; without them every client
	// may clone.
	Username, Password string
	// SSH also serves the same repositories by SSH, to the holder of Identity.
	SSH bool
}

// GitServer serves the repositories that CreateRepo creates. Its Front is that of HTTPS.
type GitServer struct {
	httpServer
	root     string
	ssh      *gittestserver.GitServer
	sshGate  *Gate
	identity []byte
	hosts    []byte
}

// StartGitServer starts a server without repositories. It needs git on the PATH.
func StartGitServer(o GitOptions) (*GitServer, error) {
	root, err := tempDir("git")
	if err != nil {
		return nil, err
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("start git server: %w", err)
	}
	g := &GitServer{root: root}
	if err := g.serve(Access{Username: o.Username, Password: o.Password, TLS: true}, backend(git, root)); err != nil {
		return nil, fmt.Errorf("start git server: %w", err)
	}
	if o.SSH {
		if err := g.startSSH(); err != nil {
			g.Stop()
			return nil, fmt.Errorf("start git server for SSH: %w", err)
		}
	}
	return g, nil
}

// backend returns a handler that runs git's own HTTP backend. That of gittestserver leaves the
// client of a shallow clone waiting forever.
func backend(git, root string) http.Handler {
	return &cgi.Handler{
		Path:   git,
		Args:   []string{"http-backend"},
		Dir:    root,
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1"},
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0),
	}
}

// Stop ends the server. Stopping twice is allowed.
func (g *GitServer) Stop() {
	g.httpServer.Stop()
	if g.sshGate != nil {
		g.sshGate.Close()
		_ = g.ssh.StopSSH() // fails only if it has stopped
	}
}

// URL returns the HTTPS address of a repository.
func (g *GitServer) URL(repo string) string {
	return g.url() + "/" + repo + ".git"
}

// SSHURL returns the SSH address of a repository. Only with GitOptions.SSH.
func (g *GitServer) SSHURL(repo string) string {
	return fmt.Sprintf("ssh://git@%s/%s.git", g.sshGate.Address(), repo)
}

// Identity returns the only private key, as PEM, that SSH accepts.
func (g *GitServer) Identity() []byte { return g.identity }

// KnownHosts returns the known_hosts line of the SSH server.
func (g *GitServer) KnownHosts() []byte { return g.hosts }

// sshSetup guards the function with which gittestserver looks up keys: there is one for the whole
// process, which is read when a server begins to listen.
var sshSetup sync.Mutex

func (g *GitServer) startSSH() error {
	authorized, err := g.makeIdentity()
	if err != nil {
		return err
	}
	keys, err := tempDir("git-keys")
	if err != nil {
		return err
	}
	g.ssh = gittestserver.NewGitServer(g.root).Auth("git", "").KeyDir(keys)
	if err := g.listenSSH(authorized); err != nil {
		return err
	}
	if g.sshGate, err = NewGate(strings.TrimPrefix(g.ssh.SSHAddress(), "ssh://git@")); err != nil {
		return errors.Join(err, g.ssh.StopSSH())
	}
	go func() { _ = g.ssh.StartSSH() }() // ends with an error when it is stopped
	return g.readHostKey(filepath.Join(keys, "gitkit.rsa.pub"))
}

func (g *GitServer) listenSSH(authorized string) error {
	sshSetup.Lock()
	defer sshSetup.Unlock()
	g.ssh.PublicKeyLookupFunc(func(offered string) (*gitkit.PublicKey, error) {
		if offered != authorized {
			return nil, errors.New("key is not authorized")
		}
		return &gitkit.PublicKey{Id: "waybill"}, nil
	})
	return g.ssh.ListenSSH()
}

// makeIdentity sets the key that is accepted, and returns its public half in the format of
// authorized_keys.
func (g *GitServer) makeIdentity() (string, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("generate key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "waybill")
	if err != nil {
		return "", fmt.Errorf("encode key: %w", err)
	}
	g.identity = pem.EncodeToMemory(block)
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("encode public key: %w", err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

func (g *GitServer) readHostKey(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read host key: %w", err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(content)
	if err != nil {
		return fmt.Errorf("parse host key: %w", err)
	}
	g.hosts = []byte(knownhosts.Line([]string{g.sshGate.Address()}, key) + "\n")
	return nil
}
