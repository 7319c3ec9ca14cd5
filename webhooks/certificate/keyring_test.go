package certificate_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/webhooks/certificate"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const year = 365 * 24 * time.Hour

func newKeyring(t *testing.T) certificate.Keyring {
	t.Helper()
	k, err := certificate.Keyring{}.Rotate(now, year)
	require.NoError(t, err)
	return k
}

func rotated(t *testing.T, k certificate.Keyring, at time.Time) certificate.Keyring {
	t.Helper()
	next, err := k.Rotate(at, year)
	require.NoError(t, err)
	return next
}

func TestKeyring_survivesItsSecret(t *testing.T) {
	k := rotated(t, newKeyring(t), now)
	data, err := k.Encode()
	require.NoError(t, err)
	back, err := certificate.Decode(data)
	require.NoError(t, err)
	assert.Equal(t, k.Current.PEM(), back.Current.PEM())
	assert.Equal(t, k.Previous.PEM(), back.Previous.PEM())
	_, err = back.Previous.Issue(now, "localhost")
	require.NoError(t, err, "the keys are there too")
}

func TestDecode_refusesWhatCannotSign(t *testing.T) {
	empty, err := certificate.Decode(nil)
	require.NoError(t, err, "a chart makes the Secret empty")
	assert.Nil(t, empty.Current)

	valid, err := rotated(t, newKeyring(t), now).Encode()
	require.NoError(t, err)
	for reason, change := range map[string]func(map[string][]byte){
		"no key":            func(d map[string][]byte) { delete(d, "ca.key") },
		"no certificate":    func(d map[string][]byte) { delete(d, "ca.crt") },
		"another's key":     func(d map[string][]byte) { d["ca.key"] = d["previous.key"] },
		"garbage":           func(d map[string][]byte) { d["ca.crt"] = []byte("x") },
		"garbage as before": func(d map[string][]byte) { d["previous.key"] = []byte("x") },
	} {
		data := map[string][]byte{}
		for k, v := range valid {
			data[k] = v
		}
		change(data)
		_, err := certificate.Decode(data)
		assert.Error(t, err, reason)
		assert.NotContains(t, err.Error(), "PRIVATE", "an error shows no key")
	}
}

func TestKeyring_rotatesAfterTwoThirds(t *testing.T) {
	assert.True(t, certificate.Keyring{}.RotateAt().IsZero(), "an empty keyring is due")
	k := newKeyring(t)
	assert.WithinDuration(t, now.Add(year*2/3), k.RotateAt(), time.Second)

	next := rotated(t, k, k.RotateAt())
	assert.Equal(t, k.Current.PEM(), next.Previous.PEM())
	assert.True(t, next.RotateAt().After(k.RotateAt()))
}

func TestKeyring_bundle(t *testing.T) {
	k := newKeyring(t)
	next := rotated(t, k, now.Add(year*2/3))
	other, err := certificate.NewAuthority(now, year)
	require.NoError(t, err)

	bundle := next.Bundle(now)
	assert.True(t, certificate.Contains(bundle, next.Current), "the new one")
	assert.True(t, certificate.Contains(bundle, k.Current), "the one before")
	assert.False(t, certificate.Contains(bundle, other))
	assert.True(t, certificate.Contains(next.Bundle(now, other), other), "who still signs with another one is believed")
	assert.Equal(t, bundle, next.Bundle(now, k.Current, nil), "each once")
	assert.False(t, certificate.Contains(next.Bundle(now.Add(year+time.Hour)), k.Current), "what has ended is left out")
	assert.False(t, certificate.Contains(nil, k.Current))
	assert.False(t, certificate.Contains([]byte("x"), k.Current))
}

func TestAuthority_issues(t *testing.T) {
	a := newKeyring(t).Current
	leaf, err := a.Issue(now, "webhook.waybill-system.svc", "127.0.0.1")
	require.NoError(t, err)
	assert.True(t, leaf.IssuedBy(a))
	assert.False(t, leaf.IssuedBy(nil))
	assert.Equal(t, now.Add(certificate.LeafValidity), leaf.NotAfter().UTC())
	assert.True(t, leaf.RenewAt.Before(leaf.NotAfter()))

	short, err := certificate.NewAuthority(now, time.Hour)
	require.NoError(t, err)
	leaf, err = short.Issue(now, "localhost")
	require.NoError(t, err)
	assert.Equal(t, short.NotAfter(), leaf.NotAfter(), "no longer than the authority")

	_, err = a.Issue(now)
	assert.Error(t, err, "a certificate without names")
}

// The certificate is one that a client which trusts the bundle believes, under each of its names.
func TestHolder_serves(t *testing.T) {
	holder := &certificate.Holder{}
	server := &tls.Config{}
	holder.Configure(server)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go acceptAll(listener)
	handshake := func(k certificate.Keyring, name string) error {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(k.Bundle(time.Now()))
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name}}
		conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			return err
		}
		return conn.Close()
	}
	first, err := certificate.Keyring{}.Rotate(time.Now(), year)
	require.NoError(t, err)
	assert.Error(t, handshake(first, "localhost"), "no certificate yet")

	leaf, err := first.Current.Issue(time.Now(), "localhost", "127.0.0.1")
	require.NoError(t, err)
	holder.Set(leaf)
	require.NoError(t, handshake(first, "localhost"))
	require.NoError(t, handshake(first, "127.0.0.1"))
	assert.Error(t, handshake(first, "example.com"), "another name")

	second, err := first.Rotate(time.Now(), year)
	require.NoError(t, err)
	require.NoError(t, handshake(second, "localhost"), "who trusts the new keyring believes the old certificate")
	leaf, err = second.Current.Issue(time.Now(), "localhost")
	require.NoError(t, err)
	holder.Set(leaf)
	assert.Error(t, handshake(first, "localhost"), "signed before it is trusted")
	require.NoError(t, handshake(second, "localhost"))
}

// acceptAll shakes hands with every client, until the listener is closed.
func acceptAll(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 1)) // shakes hands first
		}()
	}
}
