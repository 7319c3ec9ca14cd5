package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"waybill.dev/waybill/sync/source/address"
	"waybill.dev/waybill/sync/source/webpage"
)

// MaxIconBytes is how large the icon of a chart may be.
const MaxIconBytes = 64 << 10

var errElsewhere = errors.New("redirect to another server refused")

// Icon fetches the icon that a chart of a repository names, without credentials. The author of a chart
// may name any address: one on the server of the repository is fetched as the chart is, and any other
// one over https, and not from this machine, its link or a metadata server.
func (c *Cache) Icon(ctx context.Context, icon, repository string) ([]byte, error) {
	target, err := url.Parse(icon)
	if err != nil {
		return nil, fmt.Errorf("%w: address of the icon cannot be parsed", ErrInvalidReference)
	}
	home, err := url.Parse(repository)
	if err != nil {
		return nil, fmt.Errorf("%w: URL cannot be parsed", ErrInvalidReference)
	}
	s := &session{origin: target, close: func() {}}
	transport, follow := c.transport, s.checkRedirect
	switch {
	case sameOrigin(target, home):
		follow = func(req *http.Request, via []*http.Request) error {
			if !sameOrigin(req.URL, target) {
				return errElsewhere
			}
			return s.checkRedirect(req, via)
		}
	case target.Scheme != "https" || target.User != nil:
		return nil, fmt.Errorf("%w: %s is not an https address", ErrInvalidReference, redact(icon))
	default:
		transport = newTransport(address.Guard{Refuse: true, Offline: c.guard.Offline})
		defer transport.CloseIdleConnections()
	}
	s.client = &http.Client{Transport: webpage.Refuse(transport), CheckRedirect: follow}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	resp, err := s.get(ctx, target, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(&limitedReader{r: resp.Body, left: MaxIconBytes, err: errTooLarge("icon "+redact(icon), "MaxIconBytes", MaxIconBytes)})
	if err != nil && !isOurs(err) {
		err = transportError(redact(icon), err)
	}
	return data, err
}
