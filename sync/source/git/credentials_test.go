package git_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"waybill.dev/waybill/sync/source/git"
)

// K24
func TestCredentialsFromSecret(t *testing.T) {
	identity := newKey(t).private
	encrypted := encryptedKey(t, "passphrase")
	hosts := []byte("example.com ssh-ed25519 AAAA")

	cases := map[string]struct {
		reason string
		data   map[string]string
		want   git.Credentials
		wrong  string
	}{
		"Basic": {
			reason: "user name and password",
			data:   map[string]string{"username": "u", "password": "p", "ca.crt": "ca", "caFile": "old"},
			want:   git.Credentials{Username: "u", Password: "p", CAFile: []byte("ca")},
		},
		"OldCAKey": {
			reason: "caFile is Flux's older name of ca.crt",
			data:   map[string]string{"caFile": "old"},
			want:   git.Credentials{CAFile: []byte("old")},
		},
		"Bearer": {
			reason: "a token",
			data:   map[string]string{"bearerToken": "t"},
			want:   git.Credentials{BearerToken: "t"},
		},
		"SSH": {
			reason: "a key and whom to trust",
			data:   map[string]string{"identity": string(identity), "known_hosts": string(hosts), "identity.pub": "ignored"},
			want:   git.Credentials{Identity: identity, KnownHosts: hosts},
		},
		"EncryptedSSH": {
			reason: "the passphrase under our key",
			data:   map[string]string{"identity": string(encrypted), "identity.password": "passphrase", "known_hosts": string(hosts)},
			want:   git.Credentials{Identity: encrypted, IdentityPassword: []byte("passphrase"), KnownHosts: hosts},
		},
		"FluxEncryptedSSH": {
			reason: "the passphrase under Flux's key",
			data:   map[string]string{"identity": string(encrypted), "password": "passphrase", "known_hosts": string(hosts)},
			want:   git.Credentials{Identity: encrypted, IdentityPassword: []byte("passphrase"), KnownHosts: hosts},
		},
		"Empty":          {reason: "a Secret of something else", data: map[string]string{"token": "t"}, wrong: "none of the keys"},
		"PasswordAlone":  {reason: "no user name", data: map[string]string{"password": "p"}, wrong: "no username"},
		"BearerAndBasic": {reason: "which one?", data: map[string]string{"bearerToken": "t", "username": "u"}, wrong: "keep one"},
		"NoKnownHosts":   {reason: "ssh trusts nobody unseen", data: map[string]string{"identity": string(identity)}, wrong: "no known_hosts"},
		"NoIdentity":     {reason: "half of ssh", data: map[string]string{"known_hosts": string(hosts)}, wrong: "no identity"},
		"NotAKey": {
			reason: "the error does not quote what may be a secret",
			data:   map[string]string{"identity": "sekret", "known_hosts": string(hosts)}, wrong: "not an ssh private key",
		},
		"NoPassphrase": {
			reason: "the key is encrypted",
			data:   map[string]string{"identity": string(encrypted), "known_hosts": string(hosts)}, wrong: "add its passphrase as identity.password",
		},
		"WrongPassphrase": {
			reason: "and the passphrase another one",
			data:   map[string]string{"identity": string(encrypted), "identity.password": "sekret", "known_hosts": string(hosts)}, wrong: "cannot be decrypted",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := make(map[string][]byte)
			for key, value := range tc.data {
				data[key] = []byte(value)
			}
			got, err := git.CredentialsFromSecret(data)
			if tc.wrong == "" {
				require.NoError(t, err, tc.reason)
				// Not assert.Equal: on a difference it would print nothing.
				assert.True(t, assert.ObjectsAreEqual(tc.want, got), tc.reason)
				return
			}
			require.ErrorIs(t, err, git.ErrInvalid, tc.reason)
			require.ErrorContains(t, err, tc.wrong, tc.reason)
			assert.NotContains(t, err.Error(), "sekret", tc.reason)
		})
	}
}

func encryptedKey(t *testing.T, passphrase string) []byte {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "test", []byte(passphrase))
	require.NoError(t, err)
	return pem.EncodeToMemory(block)
}

func TestCredentials_neverShowTheirValues(t *testing.T) {
	repo := git.Repository{URL: "https://example.com/x", Credentials: git.Credentials{
		Username: "sekret", Password: "sekret", BearerToken: "sekret", CAFile: []byte("sekret"), Identity: []byte("sekret"),
	}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		assert.NotContains(t, fmt.Sprintf(verb, repo), "sekret", verb)
		assert.NotContains(t, fmt.Sprintf(verb, &repo.Credentials), "sekret", verb)
	}
	encoded, err := json.Marshal(repo)
	require.NoError(t, err)
	assert.NotContains(t, string(encoded), "sekret")
	assert.Equal(t, "[redacted]", repo.Credentials.MarshalLog())
}

func TestResolve_refusesWhatCannotBeASource(t *testing.T) {
	basic := git.Credentials{Username: "u", Password: "sekret"}
	key := git.Credentials{Identity: newKey(t).private, KnownHosts: []byte("x")}
	for name, tc := range map[string]struct {
		repo  git.Repository
		wrong string
	}{
		"PlainHTTP":     {git.Repository{URL: "http://example.com/x", Credentials: basic}, "unencrypted"},
		"Password":      {git.Repository{URL: "https://u:sekret@example.com/x"}, "move it into a Secret"},
		"User":          {git.Repository{URL: "https://sekret@example.com/x"}, "move it into a Secret"},
		"SSHPassword":   {git.Repository{URL: "ssh://git:sekret@example.com/x", Credentials: key}, "move it into a Secret"},
		"File":          {git.Repository{URL: "file:///etc"}, "local path"},
		"Path":          {git.Repository{URL: "/etc"}, "local path"},
		"Git":           {git.Repository{URL: "git://example.com/x"}, `scheme "git" is not supported`},
		"Extension":     {git.Repository{URL: "ext::sh -c id"}, "invalid git source"},
		"NoHost":        {git.Repository{URL: "https:///x"}, "lacks host or path"},
		"NoPath":        {git.Repository{URL: "https://example.com/"}, "lacks host or path"},
		"Empty":         {git.Repository{}, "invalid git source"},
		"Nonsense":      {git.Repository{URL: "https://exa mple.com/%zz?sekret"}, "does not parse"},
		"KeyForHTTPS":   {git.Repository{URL: "https://example.com/x", Credentials: key}, "ssh key"},
		"NoKeyForSSH":   {git.Repository{URL: "ssh://example.com/x", Credentials: basic}, "ssh needs a Secret with identity"},
		"SCPWithoutKey": {git.Repository{URL: "git@example.com:x/y.git"}, "ssh needs a Secret with identity"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newStore(t).Resolve(t.Context(), tc.repo, git.Ref{})
			require.ErrorIs(t, err, git.ErrInvalid)
			require.ErrorContains(t, err, tc.wrong)
			assert.NotContains(t, err.Error(), "sekret")
		})
	}
}

func TestResolve_refusesRefsThatCannotBe(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "a"})
	store := newStore(t)
	for name, ref := range map[string]git.Ref{"ShortCommit": {Commit: "abc123"}, "Range": {SemVer: ">=banana"}} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Resolve(t.Context(), o.https(s), ref)
			assert.ErrorIs(t, err, git.ErrInvalid)
		})
	}
	_, err := store.Resolve(t.Context(), o.https(s), git.Ref{SemVer: ">=9"})
	require.ErrorIs(t, err, git.ErrRefNotFound)
	_, err = store.Open(t.Context(), o.https(s), git.Revision{Commit: "main"})
	assert.ErrorIs(t, err, git.ErrInvalid)
}
