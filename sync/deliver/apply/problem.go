package apply

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// Reasons of a Problem with an object. The reasons of rendering are in package manifest; of these,
// ReasonDuplicateObject is used here too.
const (
	// ReasonInvalid: the API server finds the object invalid, or a field of it that
	// cannot be changed was changed. The message is the API server's.
	ReasonInvalid = "Invalid"
	// ReasonRefused: admission refused the object: a webhook, a policy or a quota.
	// The message is theirs.
	ReasonRefused = "Refused"
	// ReasonForbidden: the identity that is used lacks a right; the message names
	// both.
	ReasonForbidden = "Forbidden"
	// ReasonConflict: an object of that name exists and belongs to another owner; it stays as it
	// is.
	ReasonConflict = "Conflict"
	// ReasonKindNotFound: the API server does not serve the kind. The object is
	// applied when it does.
	ReasonKindNotFound = "KindNotFound"
	// ReasonNamespaceNotFound: the namespace does not exist. The object is applied
	// when it does.
	ReasonNamespaceNotFound = "NamespaceNotFound"
	// ReasonTerminating: the object of that name, or its namespace, is being
	// deleted. The object is applied when it is gone.
	ReasonTerminating = "Terminating"
	// ReasonUnavailable: the server or the webhook that serves or admits the kind does not answer,
	// for example an aggregated API server.
	ReasonUnavailable = "Unavailable"
	// ReasonFailed: the API server failed in another way.
	ReasonFailed = "Failed"
)

// Reasons of a Warning.
const (
	// ReasonNotWatched: the identity may not list and watch the kind. Its objects are applied at
	// each Apply; edits and deletions in between go unnoticed.
	ReasonNotWatched = "NotWatched"
	// ReasonPruneHeld: an object that may no longer be wanted stays until something else has been read
	// or applied; the message names it.
	ReasonPruneHeld = "PruneHeld"
	// ReasonStray: the object carries the mark of the owner, and is in neither its source nor its
	// inventory, which may have been restored from a backup. It stays.
	ReasonStray = "Stray"
)

// wayOut says what to do about an immutable field.
const wayOut = "change it back, or delete the object: it will be recreated"

// forceHint follows wayOut where an object may be recreated without that.
const forceHint = `; to have that done, annotate the manifest with ` + v1alpha1.ForceAnnotation + `: "true"`

// AdoptionHint ends the message of a ReasonConflict, and says what to do about it.
const AdoptionHint = `to take it over, annotate the manifest with ` + v1alpha1.AdoptAnnotation + `: "true"`

// classify returns why the API server did not do what it was asked to do for one object. The
// message quotes it word for word, so that it is the same each time.
func classify(err error) (reason, message string) {
	message = rootCause(err)
	switch {
	case strings.Contains(message, "denied the request") || strings.Contains(message, "denied request"):
		return ReasonRefused, message
	case strings.Contains(message, "failed calling webhook") || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err):
		return ReasonUnavailable, message
	case isTooLarge(message):
		return ReasonInvalid, "it is too large to be stored: " + message
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ReasonTerminating, message
	case apierrors.IsForbidden(err) && strings.Contains(message, "cannot "):
		return ReasonForbidden, message
	case apierrors.IsForbidden(err):
		return ReasonRefused, message
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return ReasonConflict, message
	case apierrors.IsInvalid(err) && isImmutable(message):
		return ReasonInvalid, fmt.Sprintf("%s; %s", message, wayOut)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err),
		apierrors.IsUnsupportedMediaType(err), strings.Contains(message, "failed to create typed patch object"):
		return ReasonInvalid, message
	default:
		return ReasonFailed, message
	}
}

// isTooLarge recognises the messages about an object that is larger than etcd accepts, 1.5 MB
// unless another limit is set: from etcd itself, or on the way to it.
func isTooLarge(message string) bool {
	return strings.Contains(message, "etcdserver: request is too large") || strings.Contains(message, "trying to send message larger than max")
}

// isImmutable recognises the ways in which API servers say that a field cannot be
// changed.
func isImmutable(message string) bool {
	for _, phrase := range []string{"immutable", "may not be changed", "may not change", "cannot change", "are forbidden"} {
		if strings.Contains(message, phrase) {
			return true
		}
	}
	return false
}
