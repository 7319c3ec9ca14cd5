package git

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"
)

// Credentials authenticate against a git server and hold the trust anchors for it. The zero value
// is anonymous, with the system's certificate authorities. Credentials never show their values when
// printed or logged.
type Credentials struct {
	// Username and Password are for https. Password may be an access token.
	Username, Password string
	// BearerToken is for https servers that take a token instead.
	BearerToken string
	// CAFile holds PEM certificates that are trusted for https in addition to the system's.
	CAFile []byte
	// Identity is a private key for ssh, in PEM or OpenSSH format, and
	// IdentityPassword its passphrase, if it has one.
	Identity, IdentityPassword []byte
	// KnownHosts lists the trusted keys of ssh servers in OpenSSH's format; it
	// is required for ssh.
	KnownHosts []byte
}

// Keys of a Secret with git credentials, the same as Flux's.
const (
	keyUsername         = "username"
	keyPassword         = "password"
	keyBearerToken      = "bearerToken"
	keyCACert           = "ca.crt"
	keyCAFile           = "caFile"
	keyIdentity         = "identity"
	keyIdentityPassword = "identity.password"
	keyKnownHosts       = "known_hosts"
)

// CredentialsFromSecret reads credentials from the data of a Secret with Flux's keys: username and
// password, or bearerToken, and ca.crt (or caFile) for https; identity, with identity.password if
// it is encrypted (Flux's password is accepted too), and known_hosts for ssh. Other keys are
// ignored. It fails with ErrInvalid if there are no credentials, if the parts do not fit together,
// or if ssh comes without known_hosts.
func CredentialsFromSecret(data map[string][]byte) (Credentials, error) {
	c := Credentials{
		Username:         string(data[keyUsername]),
		Password:         string(data[keyPassword]),
		BearerToken:      string(data[keyBearerToken]),
		CAFile:           data[keyCACert],
		Identity:         data[keyIdentity],
		IdentityPassword: data[keyIdentityPassword],
		KnownHosts:       data[keyKnownHosts],
	}
	if len(c.CAFile) == 0 {
		c.CAFile = data[keyCAFile]
	}
	if len(c.Identity) > 0 && len(c.IdentityPassword) == 0 && c.Username == "" {
		c.IdentityPassword, c.Password = data[keyPassword], ""
	}
	return c, c.validate()
}

// validate checks what can be checked without a URL.
func (c Credentials) validate() error {
	switch {
	case c.isZero():
		return fmt.Errorf("%w: the Secret has none of the keys %s and %s, %s, %s, %s and %s", ErrInvalid,
			keyUsername, keyPassword, keyBearerToken, keyCACert, keyIdentity, keyKnownHosts)
	case c.Password != "" && c.Username == "":
		return fmt.Errorf("%w: the Secret has %s but no %s; most servers take any name, such as git, with a token",
			ErrInvalid, keyPassword, keyUsername)
	case c.BearerToken != "" && c.Username != "":
		return fmt.Errorf("%w: the Secret has both %s and %s; keep one", ErrInvalid, keyBearerToken, keyUsername)
	case len(c.Identity) > 0 && len(c.KnownHosts) == 0:
		return fmt.Errorf("%w: the Secret has %s but no %s; add the output of ssh-keyscan once you have checked it",
			ErrInvalid, keyIdentity, keyKnownHosts)
	case len(c.KnownHosts) > 0 && len(c.Identity) == 0:
		return fmt.Errorf("%w: the Secret has %s but no %s", ErrInvalid, keyKnownHosts, keyIdentity)
	}
	if len(c.Identity) > 0 {
		_, err := c.signer()
		return err
	}
	return nil
}

func (c Credentials) isZero() bool {
	return c.Username == "" && c.Password == "" && c.BearerToken == "" &&
		len(c.CAFile) == 0 && len(c.Identity) == 0 && len(c.KnownHosts) == 0
}

// sendsSecret reports whether an http request with these credentials carries a secret.
func (c Credentials) sendsSecret() bool {
	return c.Username != "" || c.Password != "" || c.BearerToken != ""
}

// signer parses the ssh key. Parser errors are replaced, since they may quote the key.
func (c Credentials) signer() (ssh.Signer, error) {
	if len(c.IdentityPassword) > 0 {
		signer, err := ssh.ParsePrivateKeyWithPassphrase(c.Identity, c.IdentityPassword)
		if err != nil {
			return nil, fmt.Errorf("%w: %s of the Secret cannot be decrypted with %s", ErrInvalid, keyIdentity, keyIdentityPassword)
		}
		return signer, nil
	}
	signer, err := ssh.ParsePrivateKey(c.Identity)
	var encrypted *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &encrypted):
		return nil, fmt.Errorf("%w: %s of the Secret is encrypted; add its passphrase as %s", ErrInvalid, keyIdentity, keyIdentityPassword)
	case err != nil:
		return nil, fmt.Errorf("%w: %s of the Secret is not an ssh private key", ErrInvalid, keyIdentity)
	}
	return signer, nil
}

// hash identifies the credentials without revealing them.
func (c Credentials) hash() [sha256.Size]byte {
	h := sha256.New()
	for _, part := range [][]byte{
		[]byte(c.Username), []byte(c.Password), []byte(c.BearerToken), c.CAFile, c.Identity, c.IdentityPassword, c.KnownHosts,
	} {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// secrets returns what must not appear in any message.
func (c Credentials) secrets() []string {
	var out []string
	for _, s := range []string{c.Password, c.BearerToken, string(c.IdentityPassword)} {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Format keeps every fmt verb from printing the values.
func (c Credentials) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, redacted)
}

// MarshalLog keeps structured loggers from printing the values.
func (c Credentials) MarshalLog() any {
	return redacted
}

// MarshalJSON keeps encoders from printing the values.
func (c Credentials) MarshalJSON() ([]byte, error) {
	return []byte(`"` + redacted + `"`), nil
}

const redacted = "[redacted]"
