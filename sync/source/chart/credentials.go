package chart

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// Credentials are the credentials and the TLS options for a source. The zero value is anonymous
// access over verified TLS. User name and password are sent to the host of the repository only, never
// to another host that it redirects or an index points to; a registry names the https server that
// issues its tokens, and that gets them, too. A registry configuration names the host of each of its
// entries itself. Nothing of them is ever sent over http: a source that would get them that way is
// ErrInvalidReference.
type Credentials struct {
	// Username and Password are for basic authentication, and for obtaining a registry's token.
	Username, Password string
	// RegistryConfig is a docker config.json with an `auths` section. It is used with OCI
	// registries, if Username is empty.
	RegistryConfig []byte
	// CAFile holds PEM certificates that are trusted in addition to those of the system.
	CAFile []byte
	// InsecureSkipTLS skips the verification of the server's certificate.
	InsecureSkipTLS bool
	// PlainHTTP uses http for an OCI registry, which then gets no credentials. For an HTTP repository
	// the URL decides.
	PlainHTTP bool
}

// The keys of a Secret with credentials for charts. Those that git also has are named the same.
const (
	keyUsername         = "username"
	keyPassword         = "password"
	keyRegistryConfig   = "registryConfigFile"
	keyDockerConfigJSON = ".dockerconfigjson"
	keyCA               = "ca.crt"
)

// CredentialsFromSecret reads the data of a Secret with the keys username and password, or
// registryConfigFile (also as .dockerconfigjson, the key of a kubernetes.io/dockerconfigjson
// Secret), and ca.crt. All are optional; other keys are ignored. It returns ErrInvalidReference if
// a value cannot be used; the error names the key and never the value.
func CredentialsFromSecret(data map[string][]byte) (Credentials, error) {
	cred := Credentials{
		Username:       string(data[keyUsername]),
		Password:       string(data[keyPassword]),
		RegistryConfig: data[keyRegistryConfig],
		CAFile:         data[keyCA],
	}
	if len(cred.RegistryConfig) == 0 {
		cred.RegistryConfig = data[keyDockerConfigJSON]
	}
	return cred, cred.validate()
}

// AuthoritiesFromSecret reads the certificates of the key ca.crt from the data of a Secret that
// exists for them. It returns ErrInvalidReference if there are none.
func AuthoritiesFromSecret(data map[string][]byte) ([]byte, error) {
	ca := data[keyCA]
	if len(ca) == 0 {
		return nil, fmt.Errorf("%w: Secret lacks the key %s, which holds the certificates to trust", ErrInvalidReference, keyCA)
	}
	return ca, Credentials{CAFile: ca}.validate()
}

func (c Credentials) validate() error {
	if (c.Username == "") != (c.Password == "") {
		return fmt.Errorf("%w: Secret must hold both or none of %s and %s", ErrInvalidReference, keyUsername, keyPassword)
	}
	if len(c.RegistryConfig) > 0 {
		// The parser's error may quote the file, so it is not wrapped.
		if _, err := credentials.NewMemoryStoreFromDockerConfig(c.RegistryConfig); err != nil {
			return fmt.Errorf("%w: key %s of the Secret is not a valid Docker config.json", ErrInvalidReference, keyRegistryConfig)
		}
	}
	if len(c.CAFile) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CAFile) {
		return fmt.Errorf("%w: key %s of the Secret has no PEM certificate", ErrInvalidReference, keyCA)
	}
	return nil
}

// hash distinguishes credentials without storing them: content fetched with one is not served to
// another.
func (c Credentials) hash() [sha256.Size]byte {
	var flags byte
	if c.InsecureSkipTLS {
		flags |= 1
	}
	if c.PlainHTTP {
		flags |= 2
	}
	return hashOf([]byte(c.Username), []byte(c.Password), c.RegistryConfig, c.CAFile, []byte{flags})
}

// hashOf hashes parts so that different lists of parts never collide by concatenation.
func hashOf(parts ...[]byte) [sha256.Size]byte {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write(p)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// tlsConfig returns nil if the defaults will do, so that connections can be shared.
func (c Credentials) tlsConfig() (*tls.Config, error) {
	if len(c.CAFile) == 0 && !c.InsecureSkipTLS {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("load system certificates: %w", err)
	}
	pool.AppendCertsFromPEM(c.CAFile)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, InsecureSkipVerify: c.InsecureSkipTLS}, nil
}

// forRegistry returns the function with which a registry client looks up credentials by host. User
// name and password are for host only.
func (c Credentials) forRegistry(ctx context.Context, host string) (auth.CredentialFunc, error) {
	lookup, err := c.byHost(host)
	if err != nil || !c.PlainHTTP {
		return lookup, err
	}
	found, err := lookup(ctx, host)
	if err == nil && found != auth.EmptyCredential {
		err = errUnencrypted(host, "leave out plainHTTP")
	}
	return anonymous, err
}

func anonymous(context.Context, string) (auth.Credential, error) { return auth.EmptyCredential, nil }

// byHost returns the credentials of every host.
func (c Credentials) byHost(host string) (auth.CredentialFunc, error) {
	switch {
	case c.Username != "":
		return auth.StaticCredential(host, auth.Credential{Username: c.Username, Password: c.Password}), nil
	case len(c.RegistryConfig) > 0:
		store, err := credentials.NewMemoryStoreFromDockerConfig(c.RegistryConfig)
		if err != nil {
			return nil, fmt.Errorf("%w: %s is not a valid Docker config.json", ErrInvalidReference, keyRegistryConfig)
		}
		return credentials.Credential(store), nil
	default:
		return anonymous, nil
	}
}
