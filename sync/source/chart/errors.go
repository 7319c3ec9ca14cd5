package chart

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"waybill.dev/waybill/sync/source/webpage"
)

// Every error of this package wraps one of these sentinels, the error of a context that ended, or
// an error of the local disk.
var (
	// ErrAuth: the source refused the credentials, or requires some and got none. A user must act.
	ErrAuth = errors.New("access denied")
	// ErrNotFound: the source answered, but has no such repository, chart or version. The message
	// names what it has instead.
	ErrNotFound = errors.New("not found")
	// ErrUnreachable: the source did not answer, or not with anything useful. Worth retrying.
	ErrUnreachable = errors.New("source unreachable")
	// ErrInvalidChart: the content is not an installable chart, or it hits a limit. Retrying does
	// not help until the source changes.
	ErrInvalidChart = errors.New("invalid chart")
	// ErrInvalidReference: the URL, the chart name, the version or the credentials cannot be used
	// as written.
	ErrInvalidReference = errors.New("invalid chart reference")
)

// errTooLarge says which of the Limits was hit, by the name of its field.
func errTooLarge(what, field string, limit int64) error {
	return fmt.Errorf("%w: %s exceeds the limit of %d (%s)", ErrInvalidChart, what, limit, field)
}

// errUnencrypted refuses to send credentials over an unencrypted connection.
func errUnencrypted(host, instead string) error {
	return fmt.Errorf("%w: credentials are never sent over http, as %s would get them; %s, or name no credentials",
		ErrInvalidReference, host, instead)
}

// transportError turns a failed round trip into ErrUnreachable, and keeps context errors
// recognisable.
func transportError(what string, err error) error {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("fetch %s: %w", what, err)
	case errors.Is(err, webpage.Err):
		return errWebPage(what)
	case errors.As(err, &untrusted):
		return fmt.Errorf("fetch %s: %w: certificate is not trusted (%w): name a Secret with the certificate of its authority in caSecretRef", what, ErrUnreachable, err)
	default:
		return fmt.Errorf("fetch %s: %w: %w", what, ErrUnreachable, err)
	}
}

// errWebPage: a server that wants a login often redirects to its page, instead of refusing.
func errWebPage(what string) error {
	return fmt.Errorf("fetch %s: %w: %w instead of a chart or an index: if a login is needed, name credentials, and check the URL", what, ErrAuth, webpage.Err)
}

// statusError classifies an unexpected HTTP status.
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

// isOurs reports whether err is classified already.
func isOurs(err error) bool {
	for _, sentinel := range []error{ErrAuth, ErrNotFound, ErrUnreachable, ErrInvalidChart, ErrInvalidReference} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}
