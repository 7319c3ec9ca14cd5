package git_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/test/env"
)

// K24
func TestResolve_overHTTPSTellsWhatIsWrong(t *testing.T) {
	const password = "hunter2-is-secret"
	s := newServer(t)
	s.Auth("reader", password)
	s.startHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "x"})
	plain := newServer(t)
	require.NoError(t, plain.StartHTTP())
	plainOrigin := plain.newOrigin(t, map[string]string{"a.txt": "x"})
	trusted := git.Credentials{CAFile: s.ca, Username: "reader", Password: password}
	with := func(change func(*git.Credentials)) git.Credentials {
		c := trusted
		change(&c)
		return c
	}

	cases := map[string]struct {
		reason string
		repo   git.Repository
		ref    git.Ref
		want   error
		hint   string
	}{
		"Basic": {
			reason: "user name, password and own authority",
			repo:   git.Repository{URL: s.HTTPAddress() + "/" + o.name, Credentials: trusted},
		},
		"Anonymous": {
			reason: "http is fine where nothing secret is sent",
			repo:   git.Repository{URL: plain.HTTPAddress() + "/" + plainOrigin.name},
		},
		"WrongPassword": {
			reason: "the server refuses",
			repo:   git.Repository{URL: s.HTTPAddress() + "/" + o.name, Credentials: with(func(c *git.Credentials) { c.Password = password + "x" })},
			want:   git.ErrAuthentication, hint: "check user name and password or token in the Secret",
		},
		"NoCredentials": {
			reason: "the server asks",
			repo:   git.Repository{URL: s.HTTPAddress() + "/" + o.name, Credentials: git.Credentials{CAFile: s.ca}},
			want:   git.ErrAuthentication, hint: "add a Secret",
		},
		"BearerRefused": {
			reason: "a bearer token is sent as such, and this server takes none",
			repo:   git.Repository{URL: s.HTTPAddress() + "/" + o.name, Credentials: git.Credentials{CAFile: s.ca, BearerToken: password}},
			want:   git.ErrAuthentication,
		},
		"UnknownAuthority": {
			reason: "the certificate is signed by nobody we know",
			repo:   git.Repository{URL: s.HTTPAddress() + "/" + o.name, Credentials: with(func(c *git.Credentials) { c.CAFile = nil })},
			want:   git.ErrTLS, hint: "ca.crt",
		},
		"BrokenAuthority": {
			reason: "the Secret's authority is no certificate",
			repo:   git.Repository{URL: s.HTTPAddress() + "/" + o.name, Credentials: with(func(c *git.Credentials) { c.CAFile = []byte("x") })},
			want:   git.ErrInvalid, hint: "ca.crt",
		},
		"NoRepository": {
			reason: "there is no such repository",
			repo:   git.Repository{URL: s.HTTPAddress() + "/nobody/nothing.git", Credentials: trusted},
			want:   git.ErrRepositoryNotFound, hint: "check the URL",
		},
		"NoBranch": {
			reason: "there is no such branch",
			repo:   git.Repository{URL: s.HTTPAddress() + "/" + o.name, Credentials: trusted},
			ref:    git.Ref{Branch: "nope"},
			want:   git.ErrRefNotFound, hint: `no branch "nope"`,
		},
		"ServerDown": {
			reason: "nobody listens",
			repo:   git.Repository{URL: "https://" + unusedAddress(t) + "/x.git"},
			want:   git.ErrUnreachable, hint: "connection refused",
		},
		"NotTLS": {
			reason: "the port speaks something else",
			repo:   git.Repository{URL: "https://" + plain.HTTPAddress()[len("http://"):] + "/x.git"},
			want:   git.ErrUnreachable, hint: "server gave HTTP response to HTTPS client",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newStore(t).Resolve(t.Context(), tc.repo, tc.ref)
			if tc.want == nil {
				require.NoError(t, err, tc.reason)
				return
			}
			require.ErrorIs(t, err, tc.want, tc.reason)
			assert.ErrorContains(t, err, tc.hint, tc.reason)
			assert.NotContains(t, err.Error(), password, "no error shows a secret")
		})
	}
}

func TestResolve_emptyRepository(t *testing.T) {
	s := newHTTPS(t)
	runGit(t, "", "init", "--quiet", "--bare", s.Root()+"/empty.git")
	repo := git.Repository{URL: s.HTTPAddress() + "/empty.git", Credentials: git.Credentials{CAFile: s.ca}}

	_, err := newStore(t).Resolve(t.Context(), repo, git.Ref{})

	require.ErrorIs(t, err, git.ErrRefNotFound)
	assert.ErrorContains(t, err, "the repository is empty")
}

// A server that wants a login may redirect to its page instead of refusing.
func TestResolve_loginPageIsNamed(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "x"})
	s.interfere(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		if r.URL.Path != "/login" {
			http.Redirect(w, r, "/login", http.StatusFound)
			return nil
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!DOCTYPE html><html>Sign in</html>"))
		return nil
	})

	_, err := newStore(t).Resolve(t.Context(), o.https(s), git.Ref{})

	require.ErrorIs(t, err, git.ErrAuthentication)
	assert.ErrorContains(t, err, "the server answered with a web page instead of a git repository: if a login is needed, set secretRef, and check the URL")
}

// P13
func TestResolve_serverErrorsAreTemporary(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "x"})
	s.interfere(func(w http.ResponseWriter, _ *http.Request) http.ResponseWriter {
		http.Error(w, "maintenance", http.StatusServiceUnavailable)
		return nil
	})

	_, err := newStore(t).Resolve(t.Context(), o.https(s), git.Ref{})

	require.ErrorIs(t, err, git.ErrUnreachable)
	assert.ErrorContains(t, err, "503")
}

// A redirect may move a repository, but never takes credentials along.
func TestResolve_redirectToAnotherHostGetsNoCredentials(t *testing.T) {
	thief := newHTTPS(t)
	var stolen string
	thief.interfere(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		stolen += r.Header.Get("Authorization")
		http.NotFound(w, r)
		return nil
	})
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "x"})
	s.interfere(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		http.Redirect(w, r, thief.HTTPAddress()+r.URL.RequestURI(), http.StatusFound)
		return nil
	})
	repo := o.https(s)
	repo.Credentials.Username, repo.Credentials.Password = "reader", "secret"

	_, err := newStore(t).Resolve(t.Context(), repo, git.Ref{})

	require.Error(t, err)
	assert.EqualValues(t, 1, thief.listings.Load(), "the redirect was followed")
	assert.Empty(t, stolen)
}

func TestResolve_serverThatHangsIsLeftInTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	key := newKey(t)
	for name, repo := range map[string]git.Repository{
		"https": {URL: "https://" + listener.Addr().String() + "/x.git"},
		"ssh": {
			URL:         "ssh://git@" + listener.Addr().String() + "/x.git",
			Credentials: git.Credentials{Identity: key.private, KnownHosts: knownHosts(listener.Addr().String(), key.public)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			accepted := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				// The connection stays open, and nothing is ever said.
				conn, err := listener.Accept()
				if err == nil {
					t.Cleanup(func() { _ = conn.Close() })
				}
				close(accepted)
				cancel()
			}()

			_, err := store.Resolve(ctx, repo, git.Ref{})

			<-accepted
			require.ErrorIs(t, err, git.ErrUnreachable)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

func TestResolve_timeoutSaysSo(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "x"})
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()

	_, err := newStore(t).Resolve(ctx, o.https(s), git.Ref{})

	require.ErrorIs(t, err, git.ErrUnreachable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "raise the timeout")
}

// unusedAddress returns an address at which no process listens, and no other will during the test.
func unusedAddress(t *testing.T) string {
	t.Helper()
	gate, err := env.NewGate("")
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	gate.Shut()
	return gate.Address()
}
