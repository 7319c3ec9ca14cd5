package git

import (
	"bytes"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
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

// Whatever a server sends as its list of references, what is kept of it tells the same of branches,
// tags and what is asked for.
func FuzzListing(f *testing.F) {
	const a, b = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	list := func(lines ...string) []byte {
		var out bytes.Buffer
		e := pktline.NewEncoder(&out)
		for _, line := range lines {
			if line == "" {
				_ = e.Flush()
				continue
			}
			_ = e.EncodeString(line)
		}
		return out.Bytes()
	}
	f.Add(list("# service=git-upload-pack\n", "", a+" HEAD\x00symref=HEAD:refs/heads/main\n", b+" refs/changes/1\n", a+" refs/heads/main\n", ""))
	f.Add(list(a+" refs/heads/main\x00\n", b+" refs/archive/1\n", a+" refs/archive/1^{}\n", a+" refs/pull/1/head\n", b+" refs/tags/v1", a+" refs/tags/v1^{}", ""))
	f.Add(list(a+" refs/pull/1/head\x00", "shallow "+b, ""))
	f.Add(list("ERR access denied"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		all, kept := packp.NewAdvRefs(), packp.NewAdvRefs()
		if all.Decode(bytes.NewReader(body)) != nil {
			return
		}
		w := wanted{name: "refs/pull/1/head", commit: a}
		if !assert.NoError(t, kept.Decode(newListing(io.NopCloser(bytes.NewReader(body)), w, DefaultLimits()))) {
			return
		}
		assert.Equal(t, all.Head, kept.Head)
		assert.Equal(t, all.Capabilities.String(), kept.Capabilities.String())
		for name, hash := range all.References {
			if isBranchOrTag(name) || name == w.name {
				assert.Equal(t, hash, kept.References[name])
			}
		}
		for name, hash := range all.Peeled {
			if isBranchOrTag(name) || name == w.name {
				assert.Equal(t, hash, kept.Peeled[name])
			}
		}
		if bytes.Count(body, []byte(" refs/")) == len(all.References)+len(all.Peeled) { // none is named twice
			rev := Revision{Commit: w.commit}
			assert.Equal(t, plan(all, rev, true)[0].guess, plan(kept, rev, true)[0].guess)
		}
	})
}
