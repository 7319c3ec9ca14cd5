package dashboard

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No header or cookie that a browser makes up changes the identity of its user.
func TestShared_forgedRequests(t *testing.T) {
	api := hub(t)
	mine, other := api.Namespace(t), api.Namespace(t)
	reader(t, api, mine)
	create(t, api, cluster(mine, "berlin"), cluster(other, "paris"))
	s := openShared(t, account(t, api))
	b := s.signIn(mine)
	held := b.cookie()
	for name, tc := range map[string]struct {
		reason string
		method string
		change func(*http.Request)
		status int
	}{
		"Nothing": {"it is let in", http.MethodGet, func(*http.Request) {}, http.StatusOK},
		"Impersonation": {"headers of the browser go nowhere", http.MethodGet, func(r *http.Request) {
			r.Header.Set("Impersonate-User", "kubernetes-admin")
			r.Header.Set("Impersonate-Group", "system:masters")
			r.Header.Set("Impersonate-Extra-Scopes", "all")
		}, http.StatusOK},
		"Proxy": {"no proxy was announced", http.MethodGet, func(r *http.Request) {
			r.Header.Set("X-Remote-User", "kubernetes-admin")
			r.Header.Set("X-Remote-Group", "system:masters")
		}, http.StatusOK},
		"Token":      {"the dashboard takes none", http.MethodGet, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, http.StatusOK},
		"Host":       {"a name that was made to lead here", http.MethodGet, func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		"Port":       {"another server of this host", http.MethodGet, func(r *http.Request) { r.Host = "127.0.0.1:1" }, http.StatusMisdirectedRequest},
		"Origin":     {"a form of another page", http.MethodPost, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		"CrossSite":  {"browsers say so", http.MethodPost, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"Cookie":     {"one character is another", http.MethodGet, func(r *http.Request) { setCookie(r, flip(held)) }, http.StatusUnauthorized},
		"OldCookie":  {"of another purpose", http.MethodGet, func(r *http.Request) { setCookie(r, sealFor(t, s, signInCookie, mine)) }, http.StatusUnauthorized},
		"HugeCookie": {"nothing of it is read", http.MethodGet, func(r *http.Request) { setCookie(r, strings.Repeat("A", 60000)) }, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.do(tc.method, "/", tc.change)
			assert.Equal(t, tc.status, got.status, tc.reason)
			assert.NotContains(t, got.body, "paris", tc.reason)
			if tc.status == http.StatusOK {
				assert.Contains(t, got.body, "berlin", tc.reason)
			}
		})
	}
}

func setCookie(r *http.Request, value string) {
	r.Header.Set("Cookie", (&http.Cookie{Name: sessionCookie, Value: value}).String())
}

func flip(sealed string) string {
	at := len(sealed) / 2
	other := "A"
	if sealed[at] == 'A' {
		other = "B"
	}
	return sealed[:at] + other + sealed[at+1:]
}

func sealFor(t *testing.T, s *shared, purpose, name string) string {
	t.Helper()
	by, ok := s.server.door.(*oidcDoor)
	require.True(t, ok)
	sealed, err := by.seals.seal(purpose, ticket{ID: "x", Name: name, Until: s.clock.Now().AddDate(1, 0, 0)})
	require.NoError(t, err)
	return sealed
}
