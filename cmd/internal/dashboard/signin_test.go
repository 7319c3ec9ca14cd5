package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// People sign in with their provider, and come back to the page that they wanted.
func TestSignIn_comesBackToThePage(t *testing.T) {
	s := openShared(t, account(t, hub(t)))
	s.provider.As(map[string]any{"sub": "jane@example.com"})
	b := s.browser()
	got := b.page("/search?q=%3Cb%3E%26c")
	require.Equal(t, http.StatusOK, got.status, got.body)
	assert.Contains(t, got.body, `value="&lt;b&gt;&amp;c"`, "what was asked for")
	assert.Contains(t, got.body, "jane@example.com")
	assert.Contains(t, got.body, "Sign out")
	held := b.cookie()
	require.NotEmpty(t, held)
	for _, secret := range []string{"secret-access", "secret-refresh", "jane"} {
		assert.NotContains(t, held, secret)
	}

	again := b.page("/catalog")
	assert.Equal(t, http.StatusOK, again.status)
	assert.Equal(t, 1, s.provider.SignedIn(), "once")

	copied := http.Cookie{Name: sessionCookie, Value: held}
	out := b.do(http.MethodPost, signOutPath)
	assert.Contains(t, out.body, "You are signed out")
	assert.Empty(t, b.cookie())
	other := s.browser()
	assert.Equal(t, http.StatusUnauthorized, other.get("/search", func(r *http.Request) { r.AddCookie(&copied) }).status, "nor is a copy worth anything")
}

// The cookies are of this host alone, no script reads them, and no other page has them sent along with a form.
func TestSignIn_cookies(t *testing.T) {
	s := openShared(t, account(t, hub(t)))
	b := s.browser()
	var given []*http.Cookie
	b.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		given = append(given, r.Response.Cookies()...)
		return nil
	}
	require.Equal(t, http.StatusOK, b.page("/search").status)
	found := map[string]int{}
	for _, c := range given {
		found[c.Name]++
		assert.True(t, strings.HasPrefix(c.Name, "__Host-"), c.Name)
		assert.True(t, c.Secure && c.HttpOnly && c.Path == "/" && c.Domain == "" && c.SameSite == http.SameSiteLaxMode, c.String())
	}
	assert.Equal(t, map[string]int{sessionCookie: 1, signInCookie: 2}, found, "that of the sign-in is taken back")
}

// Names that Kubernetes reserves, tokens for others, and more than a cookie holds are refused.
func TestSignIn_refuses(t *testing.T) {
	s := openShared(t, account(t, hub(t)))
	for name, tc := range map[string]struct {
		reason string
		claims map[string]any
		says   string
	}{
		"Masters":           {"who names groups at the provider would be administrator of the hub", map[string]any{"sub": "eve", "groups": []string{"team", "system:masters"}}, "system:masters"},
		"OneGroup":          {"a text is one, too", map[string]any{"sub": "eve", "groups": "system:nodes"}, "system:nodes"},
		"Component":         {"Kubernetes gives rights to these names", map[string]any{"sub": "system:kube-controller-manager"}, "reserved for Kubernetes"},
		"NoName":            {"the claim is empty", map[string]any{"sub": ""}, "no claim sub"},
		"NameIsNoText":      {"not a name", map[string]any{"sub": 7}, "failed to"},
		"Header":            {"a name that would be another header", map[string]any{"sub": "eve\r\nImpersonate-Group: system:masters"}, "control characters"},
		"MastersAfterSpace": {"HTTP/1.1 drops the space from the header", map[string]any{"sub": "eve", "groups": []string{"team", " system:masters"}}, `group &#34; system:masters&#34; begins or ends with white space`},
		"Space":             {"it would be another user to the API server", map[string]any{"sub": "alice "}, `user &#34;alice &#34; begins or ends with white space`},
		"NoBreakSpace":      {"it looks like another user", map[string]any{"sub": "\u00a0alice"}, "begins or ends with white space"},
		"Groups":            {"not names", map[string]any{"sub": "eve", "groups": map[string]any{"a": "b"}}, "neither a text nor a list"},
		"TooMany":           {"each request would carry them", map[string]any{"sub": "eve", "groups": strings.Split(strings.Repeat("g,", maxGroups+1), ",")}, "are the most"},
		"TooLong":           {"no browser keeps such a cookie", map[string]any{"sub": "eve", "groups": strings.Split(strings.Repeat(strings.Repeat("g", 80)+",", 60), ",")[:60]}, "do not fit into a cookie"},
		"OtherClient":       {"the token is for another", map[string]any{"sub": "eve", "aud": "other"}, "verify the ID token"},
		"OtherIssuer":       {"another provider", map[string]any{"sub": "eve", "iss": "https://evil.example"}, "verify the ID token"},
		"Expired":           {"it is an old one", map[string]any{"sub": "eve", "exp": time.Now().Add(-time.Hour).Unix()}, "verify the ID token"},
		"OtherNonce":        {"it is of another sign-in", map[string]any{"sub": "eve", "nonce": "x"}, "another sign-in"},
	} {
		t.Run(name, func(t *testing.T) {
			s.provider.As(tc.claims)
			b := s.browser()
			got := b.page("/")
			assert.Equal(t, http.StatusForbidden, got.status, tc.reason)
			assert.Contains(t, got.body, tc.says, tc.reason)
			assert.Empty(t, b.cookie(), tc.reason)
		})
	}
	s.provider.As(map[string]any{"sub": "jane"})
	s.provider.Refuse("access_denied")
	got := s.browser().page("/")
	assert.Equal(t, http.StatusForbidden, got.status)
	assert.Contains(t, got.body, "access_denied")
}

// A callback that belongs to the sign-in of another browser is refused.
func TestSignIn_callbackOfAnotherBrowser(t *testing.T) {
	s := openShared(t, account(t, hub(t)))
	var callback *url.URL
	stop := func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == callbackPath {
			callback = r.URL
			return http.ErrUseLastResponse
		}
		return nil
	}
	jane, eve := s.browser(), s.browser()
	for _, b := range []*browser{jane, eve} { // both are about to sign in
		b.CheckRedirect = stop
		b.page("/")
		require.NotNil(t, callback)
	}
	got := jane.page(callback.RequestURI())
	assert.Equal(t, http.StatusBadRequest, got.status)
	assert.Empty(t, jane.cookie())
}

// When a session ends, open pages say so; opening a page begins another.
func TestSession_expires(t *testing.T) {
	s := openShared(t, account(t, hub(t)))
	b := s.signIn("jane")
	events, _ := b.stream(url.Values{"kind": {"GitSync"}})
	s.clock.SetTime(s.clock.Now().Add(time.Hour + time.Second))
	require.Eventually(t, func() bool {
		select {
		case _, open := <-events:
			return !open
		default:
			return false
		}
	}, limit, often, "the stream ends")
	for _, path := range []string{"/live?kind=GitSync", "/"} {
		got := b.get(path, func(r *http.Request) { r.Header.Set("Accept", "text/html"); r.Header.Set("Sec-Fetch-Mode", "cors") })
		assert.Equal(t, http.StatusUnauthorized, got.status, "a script is told so")
		assert.NotEmpty(t, got.header.Get(signInHeader), "and that there is a way back in")
	}
	s.provider.As(map[string]any{"sub": "jane", "exp": s.clock.Now().Add(time.Hour).Unix()})
	got := b.page("/search?q=where-I-was", func(r *http.Request) { r.Header.Set("Sec-Fetch-Mode", "navigate") })
	assert.Equal(t, http.StatusOK, got.status)
	assert.Contains(t, got.body, "where-I-was")
	assert.Equal(t, 2, s.provider.SignedIn())
}

// The dashboard is there before its provider is.
func TestSignIn_providerAway(t *testing.T) {
	s := openShared(t, account(t, hub(t)), func(o *Options) { o.OIDC.IssuerURL += "/not-yet" })
	b := s.browser()
	got := b.page("/")
	assert.Equal(t, http.StatusBadGateway, got.status)
	assert.Contains(t, got.body, "You cannot sign in now")
	by, ok := s.server.door.(*oidcDoor)
	require.True(t, ok)
	by.options.IssuerURL = s.provider.URL()
	assert.Equal(t, http.StatusOK, b.page("/").status)
}

func TestLocalPath(t *testing.T) {
	for address, want := range map[string]bool{
		"/": true, "/a?b=c": true, "//evil.example": false, `/\evil.example`: false, "https://evil.example": false, "": false, "evil": false,
	} {
		assert.Equal(t, want, localPath(address), address)
	}
}
