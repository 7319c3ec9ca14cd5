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
)

// httpDialer talks to one repository over http or https and reuses connections, so that an
// ls-remote rarely costs a handshake.
type httpDialer struct {
	transport transport.Transport
	auth      transport.AuthMethod
	endpoint  transport.Endpoint
	client    *http.Client
}

func newHTTPDialer(r *remote, l Limits) (*httpDialer, error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("set up https: unexpected default transport %T", http.DefaultTransport)
	}
	base = base.Clone()
	config, err := tlsConfig(r.credentials.CAFile)
	if err != nil {
		return nil, err
	}
	base.TLSClientConfig = config
	client := &http.Client{Transport: &boundedTransport{next: base, most: l.AdvertisementBytes}}
	d := &httpDialer{transport: githttp.NewClient(client), endpoint: r.endpoint, client: client}
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
		return nil, fmt.Errorf("%w: %s of the Secret holds no PEM certificate", ErrInvalid, keyCACert)
	}
	config.RootCAs = pool
	return config, nil
}

func (d *httpDialer) dial(context.Context) (session, error) {
	// A session follows a redirect by changing its endpoint, so it gets its own.
	endpoint := d.endpoint
	s, err := d.transport.NewUploadPackSession(&endpoint, d.auth)
	if err != nil {
		return nil, err
	}
	return httpSession{s}, nil
}

func (d *httpDialer) close() {
	d.client.CloseIdleConnections()
}

// httpSession recognises refusals in the text, which some servers send with status 200.
type httpSession struct {
	transport.UploadPackSession
}

func (s httpSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	adv, err := s.UploadPackSession.AdvertisedReferencesContext(ctx)
	var said *pktline.ErrorLine
	if errors.As(err, &said) {
		return nil, refusal(said.Text)
	}
	return adv, err
}

// boundedTransport keeps a server from filling the memory with responses that are read as a whole:
// the list of references, and error texts.
type boundedTransport struct {
	next *http.Transport
	most int64
}

// errorBytes is how much of the text of a failed request is read.
const errorBytes = 64 << 10

func (t *boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch {
	case res.StatusCode >= http.StatusMultipleChoices:
		res.Body = &boundedBody{ReadCloser: res.Body, left: errorBytes, over: io.EOF}
	case strings.HasSuffix(req.URL.Path, "/info/refs"):
		over := limitError("AdvertisementBytes", t.most, "the server's list of references is too long")
		res.Body = &boundedBody{ReadCloser: res.Body, left: t.most, over: over}
	}
	return res, nil
}

// CloseIdleConnections lets http.Client reach the connections.
func (t *boundedTransport) CloseIdleConnections() {
	t.next.CloseIdleConnections()
}

// boundedBody fails with over after left bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
	over error
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.over
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
