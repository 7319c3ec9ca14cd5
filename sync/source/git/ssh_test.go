package git_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net/url"
	"testing"

	"github.com/fluxcd/gitkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"waybill.dev/waybill/sync/source/git"
)

// key is an ssh key pair.
type key struct {
	private []byte
	public  ssh.PublicKey
	signer  ssh.Signer
}

func newKey(t *testing.T) key {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "test")
	require.NoError(t, err)
	sshKey, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return key{private: pem.EncodeToMemory(block), public: sshKey, signer: signer}
}

func knownHosts(address string, public ssh.PublicKey) []byte {
	return []byte(knownhosts.Line([]string{address}, public) + "\n")
}

// sshServer is a git server over ssh that lets one user in.
type sshServer struct {
	*server
	host string
	// hostKey is the key that the server shows first.
	hostKey key
	user    key
}

func newSSH(t *testing.T) *sshServer {
	t.Helper()
	s := &sshServer{server: newServer(t), hostKey: newKey(t), user: newKey(t)}
	s.Auth("", "")
	config := &ssh.ServerConfig{}
	config.AddHostKey(s.hostKey.signer)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	otherSigner, err := ssh.NewSignerFromKey(other)
	require.NoError(t, err)
	config.AddHostKey(otherSigner)
	s.WithSSHConfig(config)
	allowed := string(ssh.MarshalAuthorizedKey(s.user.public))
	s.PublicKeyLookupFunc(func(offered string) (*gitkit.PublicKey, error) {
		if offered+"\n" != allowed {
			return nil, errors.New("unknown key")
		}
		return &gitkit.PublicKey{Id: "reader"}, nil
	})
	require.NoError(t, s.ListenSSH())
	go func() { _ = s.StartSSH() }()
	t.Cleanup(func() { _ = s.StopSSH() })
	u, err := url.Parse(s.SSHAddress())
	require.NoError(t, err)
	s.host = u.Host
	return s
}

func (s *sshServer) repository(name string) git.Repository {
	return git.Repository{URL: s.SSHAddress() + "/" + name, Credentials: git.Credentials{
		Identity: s.user.private, KnownHosts: knownHosts(s.host, s.hostKey.public),
	}}
}

// K20, K22, K24
func TestOpen_overSSH(t *testing.T) {
	s := newSSH(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "over ssh"})
	o.git(t, "tag", "--annotate", "--message", "annotated", "v1.0.0")
	o.git(t, "push", "--quiet", "--tags", "origin")
	store := newStore(t)

	first := openRef(t, store, s.repository(o.name), git.Ref{Branch: "main"})
	o.push(t, map[string]string{"a.txt": "again"})
	second := openRef(t, store, s.repository(o.name), git.Ref{Branch: "main"})
	tag := openRef(t, newStore(t), s.repository(o.name), git.Ref{Tag: "v1.0.0"})

	assert.Equal(t, "over ssh", readFile(t, first, "a.txt"))
	assert.Equal(t, "again", readFile(t, second, "a.txt"))
	assert.Equal(t, "over ssh", readFile(t, tag, "a.txt"), "no server hands out the commit of a tag by its hash here")
}

func TestResolve_overSSHTellsWhatIsWrong(t *testing.T) {
	s := newSSH(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "x"})
	good := s.repository(o.name)
	stranger := newKey(t)
	with := func(change func(*git.Repository)) git.Repository {
		r := good
		change(&r)
		return r
	}

	cases := map[string]struct {
		reason string
		repo   git.Repository
		want   error
		hint   string
	}{
		"Good": {reason: "the right keys on both sides", repo: good},
		"StrangerKey": {
			reason: "the server does not know the key",
			repo:   with(func(r *git.Repository) { r.Credentials.Identity = stranger.private }),
			want:   git.ErrAuthentication, hint: "register its public half",
		},
		"WrongHostKey": {
			reason: "the server shows another key than known_hosts has",
			repo:   with(func(r *git.Repository) { r.Credentials.KnownHosts = knownHosts(s.host, stranger.public) }),
			want:   git.ErrHostKey, hint: "another key",
		},
		"UnknownHost": {
			reason: "known_hosts speaks of another host",
			repo:   with(func(r *git.Repository) { r.Credentials.KnownHosts = knownHosts("example.com", s.hostKey.public) }),
			want:   git.ErrHostKey, hint: "no key for " + s.host,
		},
		"BrokenKnownHosts": {
			reason: "known_hosts does not parse",
			repo:   with(func(r *git.Repository) { r.Credentials.KnownHosts = []byte("example.com ssh-nonsense AAAA\n") }),
			want:   git.ErrInvalid, hint: "known_hosts of the Secret does not parse",
		},
		"NoKnownHosts": {
			reason: "ssh without known_hosts trusts anybody",
			repo:   with(func(r *git.Repository) { r.Credentials.KnownHosts = nil }),
			want:   git.ErrInvalid, hint: "known_hosts",
		},
		"NoIdentity": {
			reason: "ssh needs a key",
			repo:   with(func(r *git.Repository) { r.Credentials.Identity = nil }),
			want:   git.ErrInvalid, hint: "identity",
		},
		"NoRepository": {
			reason: "there is no such repository",
			repo:   with(func(r *git.Repository) { r.URL = s.SSHAddress() + "/nobody/nothing.git" }),
			want:   git.ErrRepositoryNotFound, hint: "check the URL",
		},
		"ServerDown": {
			reason: "nobody listens",
			repo: with(func(r *git.Repository) {
				address := unusedAddress(t)
				r.URL = "ssh://git@" + address + "/x.git"
				r.Credentials.KnownHosts = knownHosts(address, s.hostKey.public)
			}),
			want: git.ErrUnreachable, hint: "connection refused",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newStore(t).Resolve(t.Context(), tc.repo, git.Ref{})
			if tc.want == nil {
				require.NoError(t, err, tc.reason)
				return
			}
			require.ErrorIs(t, err, tc.want, tc.reason)
			assert.ErrorContains(t, err, tc.hint, tc.reason)
		})
	}
}

// C56
func TestOpen_commitThatTheServerDoesNotHandOut(t *testing.T) {
	s := newSSH(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "buried"})
	buried := o.git(t, "rev-parse", "HEAD")
	o.push(t, map[string]string{"a.txt": "newer"})
	o.git(t, "checkout", "--quiet", "-b", "other")
	elsewhere := o.push(t, map[string]string{"a.txt": "elsewhere"})
	o.push(t, map[string]string{"a.txt": "newest elsewhere"})
	repo := s.repository(o.name)

	t.Run("NeedsBranch", func(t *testing.T) {
		store := newStore(t)
		rev, err := store.Resolve(t.Context(), repo, git.Ref{Commit: buried})
		require.NoError(t, err)
		_, err = store.Open(t.Context(), repo, rev)
		require.ErrorIs(t, err, git.ErrRefNotFound)
		assert.ErrorContains(t, err, "set the branch that contains it")
	})
	t.Run("FoundInBranch", func(t *testing.T) {
		tree := openRef(t, newStore(t), repo, git.Ref{Commit: buried, Branch: "main"})
		assert.Equal(t, "buried", readFile(t, tree, "a.txt"))
	})
	t.Run("NotInBranch", func(t *testing.T) {
		store := newStore(t)
		rev, err := store.Resolve(t.Context(), repo, git.Ref{Commit: elsewhere, Branch: "main"})
		require.NoError(t, err)
		_, err = store.Open(t.Context(), repo, rev)
		require.ErrorIs(t, err, git.ErrRefNotFound)
		assert.ErrorContains(t, err, `not, or no longer, in the history of "main"`)
	})
	t.Run("ServerAllowsIt", func(t *testing.T) {
		o.configure(t, "uploadpack.allowReachableSHA1InWant", "true")
		tree := openRef(t, newStore(t), repo, git.Ref{Commit: elsewhere})
		assert.Equal(t, "elsewhere", readFile(t, tree, "a.txt"))
	})
}
