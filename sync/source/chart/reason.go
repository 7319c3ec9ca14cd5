package chart

import (
	"errors"

	"waybill.dev/waybill/api/v1alpha1"
)

// Reason returns the condition reason for an error of this package.
func Reason(err error) string {
	switch {
	case errors.Is(err, ErrAuth):
		return v1alpha1.SourceAuthenticationFailedReason
	case errors.Is(err, ErrNotFound):
		return v1alpha1.ChartNotFoundReason
	case errors.Is(err, ErrInvalidChart), errors.Is(err, ErrInvalidReference):
		return v1alpha1.InvalidChartReason
	default:
		return v1alpha1.SourceUnreachableReason
	}
}
