package git

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"waybill.dev/waybill/sync/source/address"
	"waybill.dev/waybill/sync/source/webpage"
)

// httpDialer talks to one repository over http or https and reuses connections, so that an
// ls-remote rarely costs a handshake.
type httpDialer struct {
	base     *http.Transport
	auth     transport.AuthMethod
	endpoint transport.Endpoint
	limits   Limits
}

func newHTTPDialer(r *remote, l Limits, g address.Guard) (*httpDialer, error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("set up https: unexpected default transport %T", http.DefaultTransport)
	}
	base = base.Clone()
	base.DialContext, base.Proxy = g.DialContext, g.Proxy
	config, err := tlsConfig(r.credentials.CAFile)
	if err != nil {
		return nil, err
	}
	base.TLSClientConfig = config
	// Packs are compressed already. Anything else that a server compresses costs it little to send and
	// us much to read.
	base.DisableCompression = true
	d := &httpDialer{base: base, endpoint: r.endpoint, limits: l}
	switch c := r.credentials; {
	case c.BearerToken != "":
		d.auth = &githttp.TokenAuth{Token: c.BearerToken}
	case c.Username != "":
		d.auth = &githttp.BasicAuth{Username: c.Username, Password: c.Password}
	}
	return d, nil
}

// tlsConfig trusts the system's authorities and those in pem.
func tlsConfig(pem []byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(pem) == 0 {
		return config, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w: key %s of the Secret has no PEM certificate", ErrInvalid, keyCACert)
	}
	config.RootCAs = pool
	return config, nil
}

func (d *httpDialer) dial(_ context.Context, w wanted) (session, error) {
	// A session follows a redirect by changing its endpoint, so it gets its own.
	endpoint := d.endpoint
	bounded := &boundedTransport{next: d.base, limits: d.limits, wanted: w}
	s, err := githttp.NewClient(&http.Client{Transport: bounded}).NewUploadPackSession(&endpoint, d.auth)
	if err != nil {
		return nil, err
	}
	return httpSession{s, bounded}, nil
}

func (d *httpDialer) close() {
	d.base.CloseIdleConnections()
}

// httpSession recognises refusals in the text, which some servers send with status 200.
type httpSession struct {
	transport.UploadPackSession
	transport *boundedTransport
}

func (s httpSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	adv, err := s.UploadPackSession.AdvertisedReferencesContext(ctx)
	var said *pktline.ErrorLine
	if errors.As(err, &said) {
		return nil, refusal(said.Text)
	}
	return adv, err
}

// UploadPack implements session.
func (s httpSession) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	res, err := s.UploadPackSession.UploadPack(ctx, req)
	answer := s.transport.answer
	if answer == nil {
		return res, err
	}
	if err != nil {
		_ = answer.Close()
		return nil, answer.reason(err)
	}
	answer.lift()
	return res, nil
}

// boundedTransport keeps a server from filling the memory with responses that are read as a whole:
// the list of references, what comes before a pack, and error texts. Each session has its own.
type boundedTransport struct {
	next   *http.Transport
	limits Limits
	wanted wanted
	// answer is the response that holds the pack; nil before there is one.
	answer *boundedBody
}

// errorBytes is how much of the text of a failed request is read.
const errorBytes = 64 << 10

func (t *boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := webpage.Refuse(t.next).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch {
	case res.StatusCode >= http.StatusMultipleChoices:
		res.Body = &boundedBody{ReadCloser: res.Body, left: errorBytes, over: io.EOF}
	case strings.HasSuffix(req.URL.Path, "/"+transport.UploadPackServiceName):
		t.answer = boundedAnswer(res.Body, t.limits)
		res.Body = t.answer
	default:
		res.Body = newListing(res.Body, t.wanted, t.limits)
	}
	return res, nil
}
