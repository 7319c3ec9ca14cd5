package git

import (
	"errors"

	"waybill.dev/waybill/api/v1alpha1"
)

// Reason returns the condition reason for an error of this package.
func Reason(err error) string {
	switch {
	case errors.Is(err, ErrAuthentication), errors.Is(err, ErrHostKey), errors.Is(err, ErrTLS):
		return v1alpha1.GitAuthenticationFailedReason
	case errors.Is(err, ErrRefNotFound):
		return v1alpha1.GitReferenceNotFoundReason
	case errors.Is(err, ErrUnreachable):
		return v1alpha1.GitUnreachableReason
	default:
		return v1alpha1.GitFailedReason
	}
}
