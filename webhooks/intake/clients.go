package intake

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Clients are the callers that a Server answers: those with a client certificate that an authority
// of a file signed. The zero value stands for any caller, since most API servers have no
// certificate for webhooks.
type Clients struct {
	// CAFile holds certificates of authorities as PEM. It is read at each handshake, so that it may
	// be replaced. If empty, any client may call.
	CAFile string

	// Names are the common names, or DNS names, of which the certificate must carry one. If empty,
	// any name will do.
	Names []string
}

// Check returns an error if the options cannot work.
func (c Clients) Check() error {
	if c.CAFile == "" {
		if len(c.Names) > 0 {
			return errors.New("names of clients need the file of the authority that signs their certificates")
		}
		return nil
	}
	_, err := c.authorities()
	return err
}

// configure makes a TLS server verify the certificates of clients. A client without one completes
// the handshake, as the readiness check does, and gets an error that says why it is refused.
func (c Clients) configure(config *tls.Config) {
	if c.CAFile == "" {
		return
	}
	base := config.Clone()
	base.ClientAuth, base.SessionTicketsDisabled = tls.VerifyClientCertIfGiven, true
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		authorities, err := c.authorities()
		if err != nil {
			return nil, err
		}
		current := base.Clone()
		current.ClientCAs = authorities
		return current, nil
	}
}

func (c Clients) authorities() (*x509.CertPool, error) {
	content, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read client CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("read client CA: %s contains no PEM certificate", c.CAFile)
	}
	return pool, nil
}

// admit refuses a connection without a verified certificate of one of the names.
func (c Clients) admit(state *tls.ConnectionState) error {
	if c.CAFile == "" {
		return nil
	}
	if state == nil || len(state.VerifiedChains) == 0 {
		return errors.New("a client certificate is required: the kubeconfig of the API server's admission configuration must have one")
	}
	leaf := state.VerifiedChains[0][0]
	names := append([]string{leaf.Subject.CommonName}, leaf.DNSNames...)
	if len(c.Names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(c.Names, name) }) {
		return fmt.Errorf("the client certificate is for %q, which may not call this webhook", leaf.Subject.CommonName)
	}
	return nil
}
