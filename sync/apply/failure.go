package apply

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/sync/watch"
)

// clusterFailure returns the error of the cluster as a whole that err shows, or
// nil where err is about one object or kind: what an API server answers is about
// that, unless it does not know who we are.
func clusterFailure(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return watch.Stable(err)
	}
	if apierrors.IsUnauthorized(err) || watch.IsImpersonation(err) {
		return watch.Stable(err)
	}
	return nil
}

// isNamespaceNotFound tells whether an object was not created for want of its
// namespace.
func isNamespaceNotFound(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return status.Status().Details.Kind == namespaceResource.Resource
}

// isOutdated tells whether a write failed because the live object is not the one
// that it was meant for: deleted, made anew, or written by somebody else before
// us.
func isOutdated(err error) bool {
	var rival *rivalError
	if apierrors.IsConflict(err) || errors.As(err, &rival) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// rootCause returns the words of the API server in an error that client-go has
// wrapped.
func rootCause(err error) string {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status.ErrStatus.Message
	}
	return err.Error()
}
