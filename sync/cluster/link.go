package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
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
	// maxProbeAnswer bounds how many bytes of an answer a probe reads.
	maxProbeAnswer = 256 << 10
)

// link holds all connections to one API server with one set of credentials. It does not use the
// transports that client-go shares between equal configurations, because those live for ever and
// cannot be cut when the server hangs.
type link struct {
	// config is the configuration for clients; all their requests go through the breaker.
	config  *rest.Config
	breaker *breaker

	base  *transports
	conns *connrotation.Dialer
	// straight bypasses the breaker; the probe uses it.
	straight *http.Client
	url      string
}

// newLink prepares the connections to the server of config without opening any. suspect is called
// if a request fails or goes unanswered for longer than patience.
func newLink(config *rest.Config, patience time.Duration, suspect func()) (*link, error) {
	parts, err := config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("prepare transport: %w", err)
	}
	tlsConfig, err := transport.TLSConfigFor(parts)
	if err != nil {
		return nil, fmt.Errorf("prepare TLS: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("parse server: %w", err)
	}
	dial := (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext
	if parts.DialHolder != nil {
		dial = parts.DialHolder.Dial
	}
	l := &link{conns: connrotation.NewDialer(dial), url: strings.TrimSuffix(server.String(), "/")}
	l.base = newTransports(func() *http.Transport {
		return utilnet.SetTransportDefaults(&http.Transport{
			TLSClientConfig:       tlsConfig.Clone(),
			DialContext:           l.conns.DialContext,
			TLSHandshakeTimeout:   connectTimeout,
			ResponseHeaderTimeout: answerTimeout,
			DisableCompression:    config.DisableCompression,
		})
	})
	l.breaker = &breaker{base: l.base, host: server.Host, patience: patience, suspect: suspect}
	l.config = l.behind(config, wrapped(parts, l.breaker))
	l.straight, err = rest.HTTPClientFor(l.behind(config, wrapped(parts, l.base)))
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	l.straight.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return l, nil
}

// wrapped applies the configuration's own transport wrapper: the credentials that a program
// provides, if that is allowed.
func wrapped(parts *transport.Config, rt http.RoundTripper) http.RoundTripper {
	if parts.WrapTransport == nil {
		return rt
	}
	return parts.WrapTransport(rt)
}

// behind returns config with an existing transport. Credentials sent in headers stay in the
// configuration; those of TLS are part of the transport.
func (l *link) behind(config *rest.Config, rt http.RoundTripper) *rest.Config {
	return &rest.Config{
		Host:        l.url,
		APIPath:     config.APIPath,
		Username:    config.Username,
		Password:    config.Password,
		BearerToken: config.BearerToken,
		UserAgent:   config.UserAgent,
		Transport:   rt,
		QPS:         -1, // fairness is the API server's business
	}
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
}

// renew reports whether the API server is ready when it is asked over a new connection: behind a load
// balancer, the server that the present connections lead to may be about to end, while others serve.
// If so, later requests use new connections, and those under way come to their end.
func (l *link) renew(ctx context.Context) bool {
	old := l.base.replace(nil)
	if err := l.ready(ctx); err != nil && !mayNotAsk(err) {
		old = l.base.replace(old)
		old.CloseIdleConnections()
		return false
	}
	old.CloseIdleConnections()
	return true
}

// ready checks whether the API server can serve. An answer that refuses only us still means that
// the server answers.
func (l *link) ready(ctx context.Context) error { return l.get(ctx, "/readyz", nil) }

// identity is what a cluster reports about itself.
type identity struct {
	version string
	uid     string
}

// identify reads the version of the API server and the UID of namespace kube-system, which
// identifies the cluster (C45).
func (l *link) identify(ctx context.Context) (identity, error) {
	var id identity
	version, err := l.version(ctx)
	if err != nil {
		return id, err
	}
	namespace := metav1.PartialObjectMetadata{}
	if err := l.get(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem, &namespace); err != nil {
		return id, err
	}
	if namespace.UID == "" {
		return id, fmt.Errorf("namespace %s has no UID: the server is no Kubernetes API server", metav1.NamespaceSystem)
	}
	return identity{version: version, uid: string(namespace.UID)}, nil
}

func (l *link) version(ctx context.Context) (string, error) {
	answer := struct {
		GitVersion string `json:"gitVersion"`
	}{}
	if err := l.get(ctx, "/version", &answer); err != nil {
		return "", err
	}
	const longest = 64
	return answer.GitVersion[:min(len(answer.GitVersion), longest)], nil
}

// get requests a path, bypassing the breaker, and decodes the answer unless into is nil.
func (l *link) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+path, nil)
	if err != nil {
		return fmt.Errorf("build request: %w", err)
	}
	req.Header.Set("Accept", "application/json, */*")
	resp, err := l.straight.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	l.breaker.answered.Store(time.Now().UnixNano())
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProbeAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &statusError{path: path, code: resp.StatusCode}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer to %s is no JSON of Kubernetes", path)
	}
	return nil
}
