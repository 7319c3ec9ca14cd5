package chart

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
)

// Every error of this package wraps one of these sentinels, or the error of a context that ended, or an error of the local disk.
var (
	// ErrAuth: the source refused the credentials, or wants some and got none. A user must act.
	ErrAuth = errors.New("access denied")
	// ErrNotFound: the source answered, and has no such repository, chart or version. The message names what it has instead.
	ErrNotFound = errors.New("not found")
	// ErrUnreachable: the source did not answer, or not with anything useful. Worth trying again.
	ErrUnreachable = errors.New("source unreachable")
	// ErrInvalidChart: what came is no chart that can be installed, or it hits a limit. It stays so until the source changes.
	ErrInvalidChart = errors.New("invalid chart")
	// ErrInvalidReference: the URL, the chart name, the version or the credentials cannot be used as they are written.
	ErrInvalidReference = errors.New("invalid chart reference")
)

// errTooLarge says which of the Limits was hit, by the name of its field.
func errTooLarge(what, field string, limit int64) error {
	return fmt.Errorf("%w: %s exceeds the limit of %d (%s)", ErrInvalidChart, what, limit, field)
}

// transportError makes ErrUnreachable of a failed round trip, and keeps the end of a context recognisable.
func transportError(what string, err error) error {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("fetch %s: %w", what, err)
	case errors.As(err, &untrusted):
		return fmt.Errorf("fetch %s: %w: certificate is not trusted (%w); give the certificate of its authority", what, ErrUnreachable, err)
	default:
		return fmt.Errorf("fetch %s: %w: %w", what, ErrUnreachable, err)
	}
}

// statusError sorts the answer of a server that is not the one asked for.
func statusError(what string, status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("fetch %s: %w: server answered %d", what, ErrAuth, status)
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("fetch %s: %w: server answered %d", what, ErrNotFound, status)
	default:
		return fmt.Errorf("fetch %s: %w: server answered %d", what, ErrUnreachable, status)
	}
}

// isOurs tells whether err has been sorted already.
func isOurs(err error) bool {
	for _, sentinel := range []error{ErrAuth, ErrNotFound, ErrUnreachable, ErrInvalidChart, ErrInvalidReference} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}
