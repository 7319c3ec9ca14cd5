package certificate

import (
	"bytes"
	"fmt"
	"time"

	"k8s.io/client-go/util/cert"
)

// The keys of the Secret that holds a keyring.
const (
	currentCert  = "ca.crt"
	currentKey   = "ca.key"
	previousCert = "previous.crt"
	previousKey  = "previous.key"
)

// Keyring is the authority that issues certificates, and the previous one. Both are trusted; the
// previous one signs until the current one is trusted everywhere.
type Keyring struct {
	// Current authority.
	Current *Authority

	// Previous authority; nil before the first rotation.
	Previous *Authority
}

// Decode reads the data of a Secret. It returns an empty keyring and no error if there is no data.
func Decode(data map[string][]byte) (Keyring, error) {
	if len(data[currentCert]) == 0 && len(data[currentKey]) == 0 {
		return Keyring{}, nil
	}
	current, err := decodeAuthority(data[currentCert], data[currentKey])
	if err != nil {
		return Keyring{}, fmt.Errorf("decode %s: %w", currentCert, err)
	}
	k := Keyring{Current: current}
	if len(data[previousCert]) == 0 {
		return k, nil
	}
	if k.Previous, err = decodeAuthority(data[previousCert], data[previousKey]); err != nil {
		return Keyring{}, fmt.Errorf("decode %s: %w", previousCert, err)
	}
	return k, nil
}

// Encode writes the data of a Secret, for Decode.
func (k Keyring) Encode() (map[string][]byte, error) {
	data := map[string][]byte{}
	for _, a := range []struct {
		cert, key string
		authority *Authority
	}{{currentCert, currentKey, k.Current}, {previousCert, previousKey, k.Previous}} {
		if a.authority == nil {
			continue
		}
		key, err := a.authority.encodeKey()
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", a.key, err)
		}
		data[a.cert], data[a.key] = a.authority.PEM(), key
	}
	return data, nil
}

// RotateAt returns when the current authority is to be replaced: after two thirds of its life,
// which leaves the last third for all processes and API servers to change over. An empty keyring is
// due at once.
func (k Keyring) RotateAt() time.Time {
	if k.Current == nil {
		return time.Time{}
	}
	return twoThirds(k.Current.certificate.NotBefore.Add(skew), k.Current.NotAfter())
}

// Rotate returns a keyring with a new current authority that is valid for the given time.
func (k Keyring) Rotate(now time.Time, validity time.Duration) (Keyring, error) {
	next, err := NewAuthority(now, validity)
	if err != nil {
		return Keyring{}, fmt.Errorf("make certificate authority: %w", err)
	}
	return Keyring{Current: next, Previous: k.Current}, nil
}

// Bundle returns what a client has to trust: every authority of the keyring, and of the further
// ones, that has not expired by now, each once, the newest first.
func (k Keyring) Bundle(now time.Time, further ...*Authority) []byte {
	var bundle []byte
	for _, a := range append([]*Authority{k.Current, k.Previous}, further...) {
		if a != nil && now.Before(a.NotAfter()) && !Contains(bundle, a) {
			bundle = append(bundle, a.pem...)
		}
	}
	return bundle
}

// Contains reports whether a bundle holds the certificate of the authority.
func Contains(bundle []byte, a *Authority) bool {
	certificates, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return false // an empty bundle, or not one of ours
	}
	for _, c := range certificates {
		if bytes.Equal(c.Raw, a.certificate.Raw) {
			return true
		}
	}
	return false
}
