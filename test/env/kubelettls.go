package env

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// KubeletClient is the user as which the API server connects to kubelets.
const KubeletClient = "kube-apiserver-kubelet-client"

// KubeletTLS returns what a server on 127.0.0.1 needs to be a kubelet of this cluster: a certificate
// that the API server trusts, and the demand for the API server's own. No other client may connect, not
// even another user of the cluster.
func (c *Cluster) KubeletTLS() (*tls.Config, error) {
	pair, err := c.authority.server("127.0.0.1")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return nil, fmt.Errorf("load certificate of kubelet: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(c.authority.cert)
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
		VerifyConnection: func(state tls.ConnectionState) error {
			if user := state.PeerCertificates[0].Subject.CommonName; user != KubeletClient {
				return errors.New("only the API server may connect, not user " + user)
			}
			return nil
		},
	}, nil
}

// ServerCertificate returns a certificate and its key, both PEM, of a server of this cluster at the
// given host names and addresses.
func (c *Cluster) ServerCertificate(hosts ...string) (certificate, key []byte, err error) {
	pair, err := c.authority.server(hosts...)
	return pair.cert, pair.key, err
}
