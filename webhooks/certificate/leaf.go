package certificate

import (
	"bytes"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"time"
)

// Leaf is a serving certificate and who issued it.
type Leaf struct {
	// Issuer of the certificate.
	Issuer *Authority

	// RenewAt is when two thirds of its life are over.
	RenewAt time.Time

	serving *tls.Certificate
}

// NotAfter returns when the certificate expires.
func (l *Leaf) NotAfter() time.Time { return l.serving.Leaf.NotAfter }

// IssuedBy reports whether the authority signed the certificate.
func (l *Leaf) IssuedBy(a *Authority) bool {
	return l != nil && a != nil && bytes.Equal(l.Issuer.pem, a.pem)
}

// Holder serves one certificate from memory, which may be replaced at any time. The zero value has
// none yet and refuses every handshake.
type Holder struct {
	leaf atomic.Pointer[Leaf]
}

var errNoCertificate = errors.New("no serving certificate yet")

// Set replaces the certificate; existing connections keep theirs.
func (h *Holder) Set(l *Leaf) { h.leaf.Store(l) }

// Get returns the certificate, or nil if there is none yet.
func (h *Holder) Get() *Leaf { return h.leaf.Load() }

// Configure makes a TLS server get its certificate from the holder at each handshake.
func (h *Holder) Configure(c *tls.Config) {
	c.MinVersion = tls.VersionTLS12
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		leaf := h.leaf.Load()
		if leaf == nil {
			return nil, errNoCertificate
		}
		return leaf.serving, nil
	}
}
