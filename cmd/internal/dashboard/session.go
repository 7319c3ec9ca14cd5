package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"sync"
)

// cookieName is the name of the cookie that holds the secret of a browser that was let in.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host) // host has checked that it has one
	return "waybill-dashboard-" + port
}

// session lets in the browser that has opened an address with the token, which is good for once, and
// no other: other users of the machine can connect to loopback as well.
type session struct {
	secret string
	viewer *viewer
	// redeemed is closed once the token was used.
	redeemed chan struct{}

	mu    sync.Mutex
	token string // empty once it was used
}

func newSession(user *viewer) *session {
	return &session{secret: rand.Text(), viewer: user, redeemed: make(chan struct{}), token: rand.Text()}
}

func (s *session) routes(mux *http.ServeMux) { mux.HandleFunc("GET /login", s.login) }

// host reports whether a host is this machine: another site whose name was made to resolve to it is told by that name.
func (s *session) host(named string) bool {
	host, _, err := net.SplitHostPort(named)
	return err == nil && slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, host)
}

// path is what is to be opened.
func (s *session) path() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "/login?token=" + s.token
}

// redeem reports whether a token is the right one, and was not used before.
func (s *session) redeem(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || !same(token, s.token) {
		return false
	}
	s.token = ""
	close(s.redeemed)
	return true
}

// login exchanges the token of an address for a cookie.
func (s *session) login(w http.ResponseWriter, r *http.Request) {
	if !s.redeem(r.URL.Query().Get("token")) {
		refuse(w, "This address was used already. Run `waybill dashboard` again to open another browser.")
		return
	}
	// Cookies know no ports: each dashboard has one of its own.
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: s.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	if r.Header.Get("Sec-Fetch-Site") == "none" {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	// A page has led here, that of open for one. The cookie is not sent where that leads to by itself, but is from a page of ours.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = signpost.Execute(w, "/") // the browser may have left
}

// require serves only the browser that was let in.
func (s *session) require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie(cookieName(r))
		if err != nil || !same(cookie.Value, s.secret) {
			refuse(w, "Open the address that `waybill dashboard` has printed.")
			return
		}
		next.ServeHTTP(w, as(r, s.viewer))
	})
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func refuse(w http.ResponseWriter, why string) { http.Error(w, why, http.StatusUnauthorized) }

// named serves requests only if they are for a host that the dashboard answers to.
func named(by door, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !by.host(r.Host) {
			http.Error(w, "The dashboard does not answer to this host: open the address that it was given.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// headers has browsers load nothing but what this server sends, and run no script that it does not serve as
// a file.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
				"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control":                "no-store",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}
