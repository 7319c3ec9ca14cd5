package apply

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/sync/watch"
)

// clusterFailure returns the error of the cluster as a whole that err shows, or
// nil where err is about one object or kind: what an API server answers is about
// that, unless it does not know who we are.
func clusterFailure(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return failureError{err}
	}
	if apierrors.IsUnauthorized(err) || watch.IsImpersonation(err) {
		return failureError{err}
	}
	return nil
}

// failureError is an error without what differs from one request to the next: the
// URL and the port we came from. What it wraps is as it was.
type failureError struct{ cause error }

func (e failureError) Unwrap() error { return e.cause }

func (e failureError) Error() string {
	if errors.Is(e.cause, context.DeadlineExceeded) {
		return "API server: no answer in time"
	}
	var operation *net.OpError
	if errors.As(e.cause, &operation) && operation.Err != nil {
		where := "API server"
		if operation.Addr != nil {
			where += " " + operation.Addr.String()
		}
		return where + ": " + operation.Err.Error()
	}
	var request *url.Error
	if errors.As(e.cause, &request) {
		return "API server: " + request.Err.Error()
	}
	return e.cause.Error()
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

// isBuiltIn tells whether a group is served by kube-apiserver itself.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !aggregated[group]
}

// aggregated lists the groups of Kubernetes that come from servers of their own.
var aggregated = map[string]bool{
	"metrics.k8s.io": true, "custom.metrics.k8s.io": true, "external.metrics.k8s.io": true,
}
