package dashboard

import (
	"crypto/tls"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certutil "k8s.io/client-go/util/cert"
)

// A certificate that is renewed is served without a restart.
func TestShared_servesTheRenewedCertificate(t *testing.T) {
	var o Options
	s := openShared(t, account(t, hub(t)), func(given *Options) { o = *given })
	serial := func() string {
		conn, err := tls.Dial("tcp", s.server.door.(*oidcDoor).url.Host, &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(o.KeyFile, key, 0o600))
	require.NoError(t, os.WriteFile(o.CertFile, certificate, 0o600))
	require.Eventually(t, func() bool { return serial() != before }, limit, often)
}

// Without one, the program makes its own: what is sent inside of the cluster is not for others to read.
func TestOptions_certificateOfItsOwn(t *testing.T) {
	config, watching, err := Options{URL: "https://waybill.example.com:8443"}.tls()
	require.NoError(t, err)
	assert.Nil(t, watching)
	require.Len(t, config.Certificates, 1)
	assert.NoError(t, config.Certificates[0].Leaf.VerifyHostname("waybill.example.com"))
}
