package git

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Whatever stands in a URL, either it is refused as invalid, or it is one of the
// four kinds that we speak; and in neither case does its password come back.
func FuzzRepository_parse(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/x.git", "https://u:%s@example.com/x", "ssh://git@example.com:22/x", "git@example.com:org/repo.git",
		"file:///etc/passwd", "../x", "ext::sh -c id", "https://[::1]:443/x", "HTTPS://example.com/x", "ssh://-oProxyCommand=id/x", "",
	} {
		f.Add(seed)
	}
	const password = "sekret-sekret"
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, "%s", password)
		secret := false
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			_, secret = u.User.Password()
		}
		for _, credentials := range []Credentials{
			{},
			{Username: "u", Password: password},
			{Identity: []byte("x"), KnownHosts: []byte("x")},
		} {
			r, err := Repository{URL: text, Credentials: credentials}.parse()
			if err != nil {
				assert.ErrorIs(t, err, ErrInvalid)
				assert.False(t, secret && strings.Contains(err.Error(), ":"+password+"@"), err)
				continue
			}
			assert.True(t, slices.Contains([]string{"https", "http", "ssh"}, r.endpoint.Protocol), r.endpoint.Protocol)
			assert.Empty(t, r.endpoint.Password)
			assert.True(t, strings.HasPrefix(r.url, r.endpoint.Protocol+"://"+r.endpoint.Host), "no user before the host: %s", r.url)
			assert.Equal(t, r.key(DefaultLimits()), r.key(DefaultLimits()))
		}
	})
}

// Whatever path a user writes, either it is refused or it stays below the root.
func FuzzInside(f *testing.F) {
	for _, seed := range []string{"", ".", "a/b", "./a/", "/a", "..", "a/../..", "a/../b", "//", "...", "..a/b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		cleaned, err := inside(p)
		if err != nil {
			assert.ErrorIs(t, err, ErrOutside)
			return
		}
		assert.False(t, strings.HasPrefix(cleaned, "/"), cleaned)
		assert.False(t, slices.Contains(strings.Split(cleaned, "/"), ".."), cleaned)
	})
}
