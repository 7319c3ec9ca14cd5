package certificate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// skew is how far clocks may be apart: certificates are valid from that long before they are
// issued.
const skew = time.Hour

// LeafValidity is the maximum validity of a serving certificate; it may be shorter, as its
// authority may end earlier.
const LeafValidity = 90 * 24 * time.Hour

// Authority is a certificate authority with its key.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

// NewAuthority creates an authority that is valid for the given time from now on.
func NewAuthority(now time.Time, validity time.Duration) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "waybill-webhook-ca"},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	certificate, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Authority{certificate: certificate, key: key, pem: encode(certificate)}, nil
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() []byte { return bytes.Clone(a.pem) }

// NotAfter returns when the authority expires.
func (a *Authority) NotAfter() time.Time { return a.certificate.NotAfter }

// Issue issues a serving certificate for the hosts, which are names or addresses.
func (a *Authority) Issue(now time.Time, hosts ...string) (*Leaf, error) {
	if len(hosts) == 0 {
		return nil, errors.New("issue certificate: no host")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "waybill-webhook"},
		NotBefore:   latest(now.Add(-skew), a.certificate.NotBefore),
		NotAfter:    earliest(now.Add(LeafValidity), a.certificate.NotAfter),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	certificate, err := sign(template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &Leaf{
		Issuer:  a,
		RenewAt: twoThirds(now, certificate.NotAfter),
		serving: &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key, Leaf: certificate},
	}, nil
}

// decodeAuthority reads an authority from its certificate and its key in PEM.
func decodeAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	certificates, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, fmt.Errorf("parse certificate: %w", err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, errors.New("parse key: not a private key in PEM")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("parse key: %T cannot sign", key)
	}
	certificate := certificates[0]
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !certificate.IsCA || !ok || !public.Equal(certificate.PublicKey) {
		return nil, errors.New("the certificate is not that of an authority with this key")
	}
	return &Authority{certificate: certificate, key: signer, pem: encode(certificate)}, nil
}

func (a *Authority) encodeKey() ([]byte, error) { return keyutil.MarshalPrivateKeyToPEM(a.key) }

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw})
}

// twoThirds returns the moment when two thirds of the time are over.
func twoThirds(from, to time.Time) time.Time { return from.Add(to.Sub(from) / 3 * 2) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
