package release

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/helm"
)

// Reason says what kind of failure an Error is.
type Reason string

const (
	// ReasonValues: the values do not fit the chart. Terminal.
	ReasonValues Reason = "Values"
	// ReasonRender: the chart does not render, or not to objects that a cluster can take. Terminal.
	ReasonRender Reason = "Render"
	// ReasonInvalidObject: the API server rejects an object as it is. Terminal.
	ReasonInvalidObject Reason = "InvalidObject"
	// ReasonConflict: an object of the release already exists and belongs to another owner, or the
	// release itself does.
	ReasonConflict Reason = "Conflict"
	// ReasonUnknownKind: the cluster does not know the kind of an object; its CRD may still come.
	ReasonUnknownKind Reason = "UnknownKind"
	// ReasonHook: a hook failed or took too long.
	ReasonHook Reason = "Hook"
	// ReasonBusy: another action on the release is running.
	ReasonBusy Reason = "Busy"
	// ReasonGone: there is no such release, or it was uninstalled. Ensure installs it again.
	ReasonGone Reason = "Gone"
	// ReasonNotDeployed: there is such a release, and its newest revision is not deployed: the last
	// action failed or has not ended. Ensure takes that action again; when is up to the caller.
	ReasonNotDeployed Reason = "NotDeployed"
	// ReasonAltered: the record of a release differs from what was noted, so it is neither run nor
	// applied. Ensure creates another revision from the chart.
	ReasonAltered Reason = "Altered"
	// ReasonNoRevision: the history of the release does not have the revision that is asked for.
	ReasonNoRevision Reason = "NoRevision"
	// ReasonCRD: the chart would replace a CRD that others brought, or remove versions or fields of one.
	// Nothing was written.
	ReasonCRD Reason = "CRD"
	// ReasonUnused: the objects of the chart would not use claims that they have to use. Nothing of them was
	// written. Terminal.
	ReasonUnused Reason = "Unused"
	// ReasonInterrupted: the context ended before the action did.
	ReasonInterrupted Reason = "Interrupted"
	// ReasonUnavailable: the API server did not do what it was asked to do, and may do so later.
	ReasonUnavailable Reason = "Unavailable"
)

// Error is why a release is not as desired. Every error of the engine is one.
type Error struct {
	Reason Reason
	Err    error
}

// Error returns the message of the underlying error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Terminal reports whether trying again with the same input is of no use.
func (e *Error) Terminal() bool {
	return e.Reason == ReasonValues || e.Reason == ReasonRender || e.Reason == ReasonInvalidObject || e.Reason == ReasonUnused
}

// IsTerminal reports whether err is a terminal Error.
func IsTerminal(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Terminal()
}

// ReasonOf returns the reason of an Error, ReasonUnavailable for any other error, and nothing for
// nil.
func ReasonOf(err error) Reason {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Reason
	default:
		return ReasonUnavailable
	}
}

// errorList is several errors on one line, for a condition.
type errorList []error

// maxErrors is how many of them are shown.
const maxErrors = 5

// join combines the errors that are not nil into one, or returns nil if there are none.
func join(errs []error) error {
	list := errorList(slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil }))
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	default:
		return list
	}
}

func (l errorList) Error() string {
	var texts []string
	for _, err := range l[:min(len(l), maxErrors)] {
		texts = append(texts, err.Error())
	}
	if more := len(l) - maxErrors; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

func (l errorList) Unwrap() []error { return l }

// objectError is what went wrong with one object.
type objectError struct {
	verb string
	id   manifest.ID
	err  error
}

func (e *objectError) Error() string { return fmt.Sprintf("%s %s: %v", e.verb, e.id, e.err) }
func (e *objectError) Unwrap() error { return e.err }

// hookError is a hook that did not succeed.
type hookError struct {
	id  manifest.ID
	err error
}

func (e *hookError) Error() string { return fmt.Sprintf("hook %s: %v", e.id, e.err) }
func (e *hookError) Unwrap() error { return e.err }

// importConflict is part of Helm's message if an object to be created already exists and does not
// belong to this release. That error has no type.
const importConflict = "cannot be imported into the current release"

// classify returns the reason of an error that an action returned or that its client saw, because
// Helm does not always pass the latter on.
func classify(ctx context.Context, err error, rendered bool) Reason {
	var hook *hookError
	var none *notRendered
	switch {
	case errors.As(err, &hook):
		return ReasonHook
	case ctx.Err() != nil, errors.Is(err, errUnwanted):
		return ReasonInterrupted
	case errors.Is(err, helm.ErrInvalidValues):
		return ReasonValues
	case errors.Is(err, helm.ErrRender):
		return ReasonRender
	case errors.As(err, &none):
		return ReasonUnavailable
	case errors.Is(err, driver.ErrReleaseNotFound): // deleted since it was listed, as with its namespace
		return ReasonGone
	case strings.Contains(err.Error(), importConflict):
		return ReasonConflict
	case meta.IsNoMatchError(err):
		return ReasonUnknownKind
	case refused(err):
		return ReasonInvalidObject
	case !rendered && !fromServer(err):
		return ReasonRender
	default:
		return ReasonUnavailable
	}
}

// refused reports whether the API server will reject the request, however often it is sent.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// fromServer reports whether err has to do with the API server: templates may look things up.
func fromServer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) || unanswered(err)
}

// unanswered reports whether the API server has not answered a request.
func unanswered(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport)
}
