package watch

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// IsImpersonation reports whether the request failed because our own credentials do not allow
// impersonation.
func IsImpersonation(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot impersonate")
}

// LacksRight reports whether a message says that a request was refused for want of rights: quotas and admission
// forbid as well, in other words.
func LacksRight(message string) bool {
	return strings.Contains(message, ` is forbidden: User "`) || strings.Contains(message, "attempting to grant RBAC permissions not currently held")
}

// IsKindNotFound reports whether an API server answered that it does not serve the kind, rather
// than that there is no such object or namespace.
func IsKindNotFound(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IsUnwatchable reports whether it is pointless to retry a watch: the permission is missing, or the
// kind does not support watches.
func IsUnwatchable(err error) bool {
	return apierrors.IsForbidden(err) && !IsImpersonation(err) || apierrors.IsMethodNotSupported(err)
}

// Older reports whether resource version a comes before b. It is false if either is not a number.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
