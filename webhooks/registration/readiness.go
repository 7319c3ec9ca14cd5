package registration

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// dialTimeout bounds the handshake of a readiness check.
const dialTimeout = 2 * time.Second

// Ready returns nil if this process really serves: the configurations name its endpoint, and its
// listener presents a certificate that the registered bundle verifies for the registered name. Only
// the holder of the Lease must find every one of its hooks there: during an upgrade the holder may
// be of another version, which registers other hooks and is not replaced before this process is
// ready. It is a healthz.Checker.
func (r *Registrar) Ready(req *http.Request) error {
	if r.draining.Load() {
		return errors.New("is shutting down")
	}
	s, _ := r.current()
	registered := s.mentions
	if r.leading.Load() {
		registered = s.names
	}
	if !registered(r.options.Endpoint, r.options.Hooks) {
		return fmt.Errorf("webhook configurations %s do not name %s yet", ConfigurationName, r.options.Endpoint)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.bundle()) {
		return fmt.Errorf("webhook configurations %s contain no certificate authority yet", ConfigurationName)
	}
	address, err := dialAddress(r.options.Listen)
	if err != nil {
		return err
	}
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: dialTimeout},
		Config:    &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: r.options.Endpoint.Hosts()[0]},
	}
	conn, err := dialer.DialContext(req.Context(), "tcp", address)
	if err != nil {
		return fmt.Errorf("dial own listener as an API server does: %w", err)
	}
	return conn.Close()
}

// dialAddress returns the address at which this process reaches a listener on the given one.
func dialAddress(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("parse listen address: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port), nil
}
