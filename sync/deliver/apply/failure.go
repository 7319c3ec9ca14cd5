package apply

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/sync/cluster/watch"
)

// clusterFailure returns the failure of the cluster as a whole that err reveals, or nil if err is
// about one object or kind. An answer from the API server is about the object or kind, unless it
// rejects our identity.
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

// isNamespaceNotFound reports whether an object was not created because its namespace does not
// exist.
func isNamespaceNotFound(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return status.Status().Details.Kind == namespaceResource.Resource
}

// isOutdated reports whether a write failed because the live object is not the one that it was
// meant for: it was deleted, created again, or written by another client before us.
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

// rootCause returns the message of the API server from an error that client-go has wrapped.
func rootCause(err error) string {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status.ErrStatus.Message
	}
	return err.Error()
}
