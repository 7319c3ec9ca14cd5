package watch

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// IsImpersonation tells whether the request failed before anybody looked at it:
// our own credentials do not allow to act as somebody else.
func IsImpersonation(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot impersonate")
}

// IsKindNotFound tells whether an API server answered that it does not serve the
// kind, and not that there is no such object or namespace.
func IsKindNotFound(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IsUnwatchable tells whether trying again to watch a kind is of no use: the right
// is missing, or the kind knows no watch.
func IsUnwatchable(err error) bool {
	return apierrors.IsForbidden(err) && !IsImpersonation(err) || apierrors.IsMethodNotSupported(err)
}

// Older tells whether resource version a comes before b. It is false where one of
// them is no number.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
