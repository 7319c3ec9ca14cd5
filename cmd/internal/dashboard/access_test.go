package dashboard

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/cmd/internal/fleet"
)

// answerTo returns what a dashboard that reads nothing answers to a request.
func answerTo(t *testing.T, change func(*http.Request, *session)) *httptest.ResponseRecorder {
	t.Helper()
	s, one, err := newLocal(t.Context(), fleet.NewHub("hub", &rest.Config{Host: "https://127.0.0.1:1"}), "")
	require.NoError(t, err)
	request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8090/", nil)
	change(request, one)
	recorder := httptest.NewRecorder()
	handler, err := s.handler()
	require.NoError(t, err)
	handler.ServeHTTP(recorder, request)
	return recorder
}

func letIn(r *http.Request, s *session) {
	r.AddCookie(&http.Cookie{Name: "waybill-dashboard-8090", Value: s.secret})
}

// K66: only the browser of the user who started it sees what that user may see.
func TestServer_letsInOneBrowser(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*http.Request, *session)
		status int
	}{
		"Known":    {"it has the cookie", letIn, http.StatusOK},
		"NoCookie": {"others on this machine can connect to loopback, too", func(*http.Request, *session) {}, http.StatusUnauthorized},
		"WrongValue": {"it is guessed", func(r *http.Request, _ *session) {
			r.AddCookie(&http.Cookie{Name: "waybill-dashboard-8090", Value: "x"})
		}, http.StatusUnauthorized},
		"OtherDashboard": {"it is that of another port", func(r *http.Request, s *session) {
			r.AddCookie(&http.Cookie{Name: "waybill-dashboard-8091", Value: s.secret})
		}, http.StatusUnauthorized},
		"OtherHost": {"DNS rebinding: another site whose name resolves to this machine", func(r *http.Request, s *session) {
			letIn(r, s)
			r.Host = "evil.example:8090"
		}, http.StatusMisdirectedRequest},
		"NoPort": {"browsers name the port", func(r *http.Request, s *session) {
			letIn(r, s)
			r.Host = "127.0.0.1"
		}, http.StatusMisdirectedRequest},
		"LocalhostByName": {"it is this machine", func(r *http.Request, s *session) {
			letIn(r, s)
			r.Host = "localhost:8090"
		}, http.StatusOK},
		"OtherOrigin": {"a form of another page is sent here", func(r *http.Request, s *session) {
			letIn(r, s)
			r.Method = http.MethodPost
			r.Header.Set("Origin", "https://evil.example")
		}, http.StatusForbidden},
		"NothingIsChanged": {"there is nothing to post to", func(r *http.Request, s *session) {
			letIn(r, s)
			r.Method = http.MethodPost
		}, http.StatusMethodNotAllowed},
		"WrongToken": {"it is guessed", func(r *http.Request, _ *session) { r.URL.Path, r.URL.RawQuery = "/login", "token=x" }, http.StatusUnauthorized},
		"NoToken":    {"an empty one is none", func(r *http.Request, s *session) { s.token, r.URL.Path = "", "/login" }, http.StatusUnauthorized},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := answerTo(t, tc.change)
			assert.Equal(t, tc.status, answer.Code, tc.reason)
			assert.Contains(t, answer.Header().Get("Content-Security-Policy"), "default-src 'none'", "also of what is refused")
			assert.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
			assert.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
		})
	}
}

func TestSession_tokenIsGoodForOnce(t *testing.T) {
	s := newSession(nil)
	token := s.token
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8090/login?token="+token, nil)
	request.Header.Set("Sec-Fetch-Site", "none") // the address was typed
	s.login(recorder, request)
	require.Equal(t, http.StatusSeeOther, recorder.Code)
	cookie := recorder.Result().Cookies()[0]
	assert.True(t, cookie.HttpOnly)
	assert.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	assert.NotContains(t, cookie.String(), token)

	again := httptest.NewRecorder()
	s.login(again, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8090/login?token="+token, nil))
	assert.Equal(t, http.StatusUnauthorized, again.Code, "the token in a shell history cannot be used again")
}
