package env

import (
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// Access defines how an HTTP server is reached.
type Access struct {
	// Username and Password, if set, are required by basic authentication; without them every client
	// has access. The password also works as a bearer token.
	Username, Password string
	// TLS serves HTTPS with a certificate issued by CA instead of plain HTTP.
	TLS bool
}

// CA returns the certificate authority, as PEM, of all servers with TLS except the API servers,
// which have their own.
func CA() ([]byte, error) {
	a, err := serverAuthority()
	if err != nil {
		return nil, err
	}
	return slices.Clone(a.pem), nil
}

var serverAuthority = sync.OnceValues(func() (*authority, error) { return newAuthority("waybill-test-servers") })

// serverCertificate returns the certificate of all our servers: they share the host.
var serverCertificate = sync.OnceValues(func() (keyPair, error) {
	a, err := serverAuthority()
	if err != nil {
		return keyPair{}, err
	}
	return a.server("127.0.0.1", "localhost")
})

// HTTPRequest is one request that a server received.
type HTTPRequest struct {
	Method, Path string
	// User is the name sent with basic authentication, whether it was correct or not.
	User string
}

// Front is the side of a test server that faces its clients: it counts requests,
// and makes the server die, hang, be slow or lie.
type Front struct {
	*Gate

	mu        sync.Mutex
	requests  []HTTPRequest
	intercept func(http.Handler) http.Handler
}

// Requests returns the requests received so far, in order, including refused ones.
func (f *Front) Requests() []HTTPRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Intercept puts a handler in front of the server's own; nil removes it. It sees requests before
// authentication.
func (f *Front) Intercept(with func(next http.Handler) http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.intercept = with
}

// wrap adds the front's own work to the server's handler.
func (f *Front) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		f.mu.Lock()
		f.requests = append(f.requests, HTTPRequest{Method: r.Method, Path: r.URL.Path, User: user})
		intercept := f.intercept
		f.mu.Unlock()
		if intercept != nil {
			intercept(next).ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// httpServer is one of our servers behind its front.
type httpServer struct {
	Front
	access Access
	server *httptest.Server
	forget func()
}

// serve starts handler behind authentication and the front.
func (s *httpServer) serve(access Access, handler http.Handler) error {
	s.access = access
	s.server = httptest.NewUnstartedServer(s.wrap(access.guard(handler)))
	if access.TLS {
		pair, err := serverCertificate()
		if err != nil {
			return err
		}
		certificate, err := tls.X509KeyPair(pair.cert, pair.key)
		if err != nil {
			return fmt.Errorf("load server certificate: %w", err)
		}
		s.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		s.server.StartTLS()
	} else {
		s.server.Start()
	}
	gate, err := NewGate(s.server.Listener.Addr().String())
	if err != nil {
		s.server.Close()
		return err
	}
	s.Gate = gate
	s.forget = track(s.Stop)
	return nil
}

// Stop ends the server. Stopping twice is allowed.
func (s *httpServer) Stop() {
	s.forget()
	s.Close()
	s.server.CloseClientConnections()
	s.server.Close()
}

// url returns the server's address with its scheme.
func (s *httpServer) url() string {
	if s.access.TLS {
		return "https://" + s.Address()
	}
	return "http://" + s.Address()
}

// guard requires the credentials, if there are any.
func (a Access) guard(next http.Handler) http.Handler {
	if a.Username == "" && a.Password == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && same(token, a.Password) {
			next.ServeHTTP(w, r)
			return
		}
		username, password, _ := r.BasicAuth()
		if !same(username, a.Username) || !same(password, a.Password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="waybill"`)
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
