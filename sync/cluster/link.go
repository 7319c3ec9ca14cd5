package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"
)

const (
	// connectTimeout bounds the dial and, separately, the TLS handshake.
	connectTimeout = 5 * time.Second
	// answerTimeout bounds the time to the first byte of an answer. The API server itself gives up
	// after 60 s; a watch is answered at once and may last any time.
	answerTimeout = 90 * time.Second
)

// link holds all connections to one API server as one user. It does not use the transports that
// client-go shares between equal configurations, because those live for ever and cannot be cut when
// the server hangs.
type link struct {
	// config is the configuration for clients; all their requests go through the breaker. It holds no
	// credentials, because the link adds those that are valid at the time of a request.
	config  *rest.Config
	breaker *breaker

	// bare is the configuration of the link without credentials; nil if they cannot be exchanged.
	bare  *rest.Config
	base  *channels
	conns *connrotation.Dialer
	// intake bounds what the server sends.
	intake *intake
	// asker bypasses the breaker; the probe uses it.
	*asker
}

// newLink prepares the connections to the server of config without opening any. suspect is called
// if a request fails or goes unanswered for longer than the patience of o, and over if the server sends more
// than is accepted of it. Neither may block.
func newLink(config *rest.Config, o Options, suspect func(), over func(error)) (*link, error) {
	parts, err := config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("prepare transport: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("parse server: %w", err)
	}
	dial := (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext
	if parts.DialHolder != nil {
		dial = parts.DialHolder.Dial
	}
	l := &link{bare: withoutCredentials(config), base: &channels{}, conns: connrotation.NewDialer(dial)}
	first, err := newChannel(parts, l.conns.DialContext)
	if err != nil {
		return nil, err
	}
	l.base.replace(first)
	l.intake = newIntake(l.base, strings.TrimSuffix(server.Path, "/"), o, over)
	l.breaker = &breaker{base: l.intake, host: server.Host, patience: o.Patience, suspect: suspect}
	l.config = &rest.Config{
		Host:      strings.TrimSuffix(server.String(), "/"),
		APIPath:   config.APIPath,
		UserAgent: config.UserAgent,
		Transport: wrapped(parts, l.breaker),
		QPS:       -1, // fairness is the API server's business
	}
	l.asker, err = l.asking(wrapped(parts, l.base))
	return l, err
}

// asking returns what asks the server past the breaker.
func (l *link) asking(over http.RoundTripper) (*asker, error) {
	config := rest.CopyConfig(l.config)
	config.Transport = over
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &asker{client: client, url: l.config.Host, answered: &l.breaker.answered}, nil
}

// wrapped applies the configuration's own transport wrapper: the credentials that a program
// provides, if that is allowed.
func wrapped(parts *transport.Config, rt http.RoundTripper) http.RoundTripper {
	if parts.WrapTransport == nil {
		return rt
	}
	return parts.WrapTransport(rt)
}

// cut opens the breaker and closes every connection, so that pending requests fail at once and the
// next attempt dials again.
func (l *link) cut(err error) {
	l.breaker.trip(err)
	l.conns.CloseAll()
	l.base.CloseIdleConnections()
}

// end is like cut, but for good.
func (l *link) end(err error) {
	l.breaker.end(err)
	l.conns.CloseAll()
	l.base.CloseIdleConnections()
	l.intake.forget(true)
}

// renew reports whether the API server is ready when it is asked over a new connection: behind a load
// balancer, the server that the present connections lead to may be about to end, while others serve.
// If so, later requests use new connections, and those under way come to their end.
func (l *link) renew(ctx context.Context) bool {
	old := l.base.current.Load()
	l.base.replace(old.again())
	if err := l.ready(ctx); err != nil && !mayNotAsk(err) {
		l.base.replace(old).conns.CloseIdleConnections()
		return false
	}
	old.conns.CloseIdleConnections()
	return true
}

// channel prepares a channel with the credentials of config. It is nil if config differs from that of
// the link in anything else.
func (l *link) channel(config *rest.Config) *channel {
	bare := withoutCredentials(config)
	if bare == nil || l.bare == nil || !reflect.DeepEqual(bare, l.bare) {
		return nil
	}
	parts, err := config.TransportConfig()
	if err != nil {
		return nil
	}
	built, err := newChannel(parts, l.conns.DialContext)
	if err != nil {
		return nil
	}
	return built
}

// exchange has later requests sent over a channel with other credentials, if the API server answers
// that it is the cluster with that UID, and that both credentials are those of one user. Requests under
// way, watches among them, come to their end with the old credentials.
func (l *link) exchange(ctx context.Context, by *channel, uid string) error {
	fresh, err := l.asking(by)
	if err != nil {
		return err
	}
	if err := l.compare(ctx, fresh, uid); err != nil {
		by.conns.CloseIdleConnections()
		return err
	}
	l.base.replace(by).conns.CloseIdleConnections()
	return nil
}

// compare returns why what asks with other credentials cannot take the place of the present ones.
func (l *link) compare(ctx context.Context, fresh *asker, uid string) error {
	if err := fresh.ready(ctx); err != nil && !mayNotAsk(err) {
		return err
	}
	id, err := fresh.identify(ctx)
	if err != nil {
		return err
	}
	if id.uid != uid {
		return errors.New("they lead to another cluster")
	}
	before, err := l.self(ctx)
	if err != nil {
		return errors.New("cannot identify the user of the current credentials: " + describe(err))
	}
	after, err := fresh.self(ctx)
	if err != nil {
		return err
	}
	if !sameUser(before, after) {
		return errors.New("they belong to another user")
	}
	return nil
}
