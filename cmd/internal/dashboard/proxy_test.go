package dashboard

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certutil "k8s.io/client-go/util/cert"
)

// authority signs client certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "proxies"}, key)
	require.NoError(t, err)
	return authority{certificate, key}
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// client returns a certificate of that name.
func (a authority) client(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// Headers say who a user is only where the proxy sends them, which its client certificate shows.
func TestProxy_isBelievedByItsCertificate(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	reader(t, api, ns)
	create(t, api, cluster(ns, "berlin"))
	proxies, others := newAuthority(t), newAuthority(t)
	s := startShared(t, account(t, api), &Options{HubName: "hub", Proxy: &Proxy{
		ClientCAFile: write(t, proxies.pem()), AllowedNames: []string{"front"}, UsernameHeaders: []string{"X-Remote-User"}, GroupHeaders: []string{"X-Remote-Group"},
	}})
	front := []tls.Certificate{proxies.client(t, "front")}
	for name, tc := range map[string]struct {
		reason       string
		certificates []tls.Certificate
		user         string
		groups       []string
		status       int
	}{
		"Proxy":           {"it has its certificate", front, ns, []string{"team"}, http.StatusOK},
		"NoCertificate":   {"any client can send headers", nil, ns, nil, http.StatusUnauthorized},
		"OtherAuthority":  {"any authority can sign", []tls.Certificate{others.client(t, "front")}, ns, nil, http.StatusUnauthorized},
		"OtherName":       {"the authority signs for others as well", []tls.Certificate{proxies.client(t, "other")}, ns, nil, http.StatusUnauthorized},
		"NoUser":          {"the header with the name is missing", front, "", []string{"team"}, http.StatusUnauthorized},
		"Masters":         {"reserved group", front, ns, []string{"system:masters"}, http.StatusForbidden},
		"ServiceAccount":  {"reserved user", front, "system:serviceaccount:waybill-system:waybill-sync", nil, http.StatusForbidden},
		"AnonymousByName": {"reserved user", front, "system:anonymous", nil, http.StatusForbidden},
		"SpaceInFront":    {"HTTP/1.1 would drop the space on the way to the API server", front, ns, []string{" system:masters"}, http.StatusForbidden},
		"SpaceAtTheEnd":   {"it would be another user to the API server", front, ns + " ", nil, http.StatusForbidden},
		"NoBreakSpace":    {"it looks like another group", front, ns, []string{"team\u00a0"}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			b := s.browser(tc.certificates...)
			got := b.page("/", func(r *http.Request) {
				if tc.user != "" {
					r.Header.Set("X-Remote-User", tc.user)
				}
				r.Header["X-Remote-Group"] = tc.groups
				r.Header.Set("Impersonate-Group", "system:masters")
			})
			assert.Equal(t, tc.status, got.status, tc.reason)
			if tc.status == http.StatusOK {
				assert.Contains(t, got.body, "berlin")
				assert.NotContains(t, got.body, "Sign out", "the proxy keeps sessions")
			} else {
				assert.NotContains(t, got.body, "berlin")
			}
		})
	}
}
