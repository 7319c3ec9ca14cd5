package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// channel sends requests over connections of its own, with one set of credentials. Nothing outside
// of it knows the credentials.
type channel struct {
	// RoundTripper adds the credentials that are sent in headers.
	http.RoundTripper
	// conns authenticate with the client certificate, if there is one.
	conns *http.Transport
	// again builds a channel of the same credentials without connections.
	again func() *channel
}

// newChannel prepares a channel with the credentials of parts, without opening connections.
func newChannel(parts *transport.Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*channel, error) {
	tlsConfig, err := transport.TLSConfigFor(parts)
	if err != nil {
		return nil, fmt.Errorf("prepare TLS: %w", err)
	}
	if parts.HasBasicAuth() && parts.HasTokenAuth() {
		return nil, errors.New("it has both a token and a password: remove one")
	}
	var build func() *channel
	build = func() *channel {
		conns := utilnet.SetTransportDefaults(&http.Transport{
			TLSClientConfig:       tlsConfig.Clone(),
			DialContext:           dial,
			TLSHandshakeTimeout:   connectTimeout,
			ResponseHeaderTimeout: answerTimeout,
			DisableCompression:    parts.DisableCompression,

			MaxResponseHeaderBytes: maxHeader,
			HTTP2: &http.HTTP2Config{
				MaxReceiveBufferPerStream:     maxStreamBuffer,
				MaxReceiveBufferPerConnection: maxConnectionBuffer,
			},
		})
		return &channel{RoundTripper: authorized(parts, conns), conns: conns, again: build}
	}
	return build(), nil
}

// authorized adds the credentials of parts that are sent in headers.
func authorized(parts *transport.Config, rt http.RoundTripper) http.RoundTripper {
	switch {
	case parts.HasTokenAuth():
		return transport.NewBearerAuthRoundTripper(parts.BearerToken, rt)
	case parts.HasBasicAuth():
		return transport.NewBasicAuthRoundTripper(parts.Username, parts.Password, rt)
	}
	return rt
}

// channels sends requests over one channel, until that is replaced by another.
type channels struct{ current atomic.Pointer[channel] }

// RoundTrip implements http.RoundTripper.
func (c *channels) RoundTrip(req *http.Request) (*http.Response, error) {
	return c.current.Load().RoundTrip(req)
}

// replace has later requests sent over another channel, and returns the one that sent them so far.
// The connections of that close once they have been idle for a while.
func (c *channels) replace(by *channel) *channel { return c.current.Swap(by) }

// CloseIdleConnections closes those of the present channel.
func (c *channels) CloseIdleConnections() { c.current.Load().conns.CloseIdleConnections() }

// withoutCredentials returns the part of config that says where requests go and how. It is nil if the
// credentials are not in config itself: those of a program or a file change by themselves.
func withoutCredentials(config *rest.Config) *rest.Config {
	if config.ExecProvider != nil || config.AuthProvider != nil || config.WrapTransport != nil ||
		config.BearerTokenFile != "" || config.CertFile != "" || config.KeyFile != "" {
		return nil
	}
	bare := rest.CopyConfig(config)
	bare.BearerToken, bare.Username, bare.Password = "", "", ""
	bare.CertData, bare.KeyData = nil, nil
	return bare
}
