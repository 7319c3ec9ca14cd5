package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"waybill.dev/waybill/sync/source/address"
	"waybill.dev/waybill/sync/source/webpage"
)

const (
	userAgent = "waybill"

	dialTimeout   = 15 * time.Second
	headerTimeout = 30 * time.Second
	maxRedirects  = 10
)

// session talks to one source with one set of credentials for the duration of one fetch.
type session struct {
	client *http.Client
	cred   Credentials
	// origin is the only server that receives the user name and password.
	origin *url.URL
	close  func()
}

// newSession opens a session with the host of rawURL. The caller must close it.
func (c *Cache) newSession(rawURL string, cred Credentials) (*session, error) {
	origin, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w: URL cannot be parsed", ErrInvalidReference)
	}
	tlsConfig, err := cred.tlsConfig()
	if err != nil {
		return nil, err
	}
	s := &session{cred: cred, origin: origin, close: func() {}}
	transport := c.transport
	if tlsConfig != nil {
		transport = newTransport(c.guard)
		transport.TLSClientConfig = tlsConfig
		s.close = transport.CloseIdleConnections
	}
	s.client = &http.Client{Transport: webpage.Refuse(transport), CheckRedirect: s.checkRedirect}
	return s, nil
}

func newTransport(g address.Guard) *http.Transport {
	g.Timeout = dialTimeout
	return &http.Transport{
		Proxy:                 g.Proxy,
		DialContext:           g.DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       time.Minute,
		// A repository may send archives with a Content-Encoding of their own; they must arrive as
		// they were signed.
		DisableCompression: true,
	}
}

var errDowngrade = errors.New("redirect from https to http refused")

// checkRedirect keeps credentials from every origin but the first. The standard library does that
// by host name only, and lets them through to another port, to a subdomain and to plain http.
func (s *session) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errDowngrade
	}
	if !sameOrigin(req.URL, s.origin) {
		req.Header.Del("Authorization")
		req.Header.Del("Cookie")
	}
	return nil
}

// sameOrigin compares scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case strings.EqualFold(u.Scheme, "http"):
		return "80"
	default:
		return "443"
	}
}

// get requests target. It returns the response if its status is 200, or 304 if header makes the
// request conditional; everything else is an error. The caller must close the body.
func (s *session) get(ctx context.Context, target *url.URL, header http.Header) (*http.Response, error) {
	what := redact(target.String())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: URL %s: cannot be requested", ErrInvalidReference, what)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", userAgent)
	if s.cred.Username != "" && sameOrigin(target, s.origin) {
		if target.Scheme != "https" {
			return nil, errUnencrypted(target.Host, "give its https:// address")
		}
		req.SetBasicAuth(s.cred.Username, s.cred.Password)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, transportError(what, withoutURL(err))
	}
	if resp.StatusCode == http.StatusOK || (len(header) > 0 && resp.StatusCode == http.StatusNotModified) {
		return resp, nil
	}
	_ = resp.Body.Close()
	return nil, statusError(what, resp.StatusCode)
}

// withoutURL removes the URL, whose query may be a secret, from an error of the HTTP client.
func withoutURL(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}

// limitedReader fails with err, rather than ending, if more than left bytes come.
type limitedReader struct {
	r    io.Reader
	left int64
	err  error
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, l.err
	}
	return n, err
}
