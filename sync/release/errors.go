package release

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

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
	// ReasonRender: the chart does not render, or not to what a cluster can take. Terminal.
	ReasonRender Reason = "Render"
	// ReasonInvalidObject: the API server refuses an object as it is. Terminal.
	ReasonInvalidObject Reason = "InvalidObject"
	// ReasonConflict: an object of the release exists already and is somebody else's, or the release itself is.
	ReasonConflict Reason = "Conflict"
	// ReasonUnknownKind: the cluster does not know the kind of an object; its CRD may come.
	ReasonUnknownKind Reason = "UnknownKind"
	// ReasonHook: a hook failed or took too long.
	ReasonHook Reason = "Hook"
	// ReasonBusy: another action on the release is going on.
	ReasonBusy Reason = "Busy"
	// ReasonGone: there is no such release, or none that is deployed.
	ReasonGone Reason = "Gone"
	// ReasonAltered: the record of a release is not as it was noted, and so is neither run nor applied. Ensure makes another
	// revision from the chart.
	ReasonAltered Reason = "Altered"
	// ReasonInterrupted: the context ended before the action did.
	ReasonInterrupted Reason = "Interrupted"
	// ReasonUnavailable: the API server did not do what it was asked for, and may do so later.
	ReasonUnavailable Reason = "Unavailable"
)

// Error is why a release is not as it is wanted. Every error of the engine is one.
type Error struct {
	Reason Reason
	Err    error
}

// Error returns the text of what went wrong.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// Terminal says that trying again with the same input is of no use.
func (e *Error) Terminal() bool {
	return e.Reason == ReasonValues || e.Reason == ReasonRender || e.Reason == ReasonInvalidObject
}

// IsTerminal tells whether err is an Error that is terminal.
func IsTerminal(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Terminal()
}

// ReasonOf returns the reason of an Error, ReasonUnavailable for any other error, and nothing for nil.
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

// join makes one error of those that are not nil.
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

// importConflict is what Helm says when an object that it is to create exists and is not this release's. It has no type.
const importConflict = "cannot be imported into the current release"

// classify finds the reason for what an action returned, or what its client saw, which Helm does not always hand on.
func classify(ctx context.Context, err error, rendered bool) Reason {
	var hook *hookError
	switch {
	case errors.As(err, &hook):
		return ReasonHook
	case ctx.Err() != nil:
		return ReasonInterrupted
	case errors.Is(err, helm.ErrInvalidValues):
		return ReasonValues
	case errors.Is(err, helm.ErrRender):
		return ReasonRender
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

// refused tells whether the API server will not take what it was sent, however often.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// fromServer tells whether err has to do with the API server: templates may look things up.
func fromServer(err error) bool {
	var status apierrors.APIStatus
	var transport *url.Error
	return errors.As(err, &status) || errors.As(err, &transport)
}
