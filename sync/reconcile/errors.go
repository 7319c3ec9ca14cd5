package reconcile

import (
	"errors"
	"fmt"
	"time"
)

// reaction is what an error asks for.
type reaction int

const (
	// retry: try again after a back-off that grows.
	retry reaction = iota
	// wait: something else has to happen first; an event, or a given time, wakes us.
	wait
	// stall: a person has to act; nothing happens before an object changes.
	stall
)

// Error carries, beside what went wrong, the reason that conditions show and how to
// react. It is found with errors.As, however deep it is wrapped.
type Error struct {
	// Reason for conditions and events; one of the documented constants of the API.
	Reason string
	// Err is what went wrong; its text is the message of the condition and so must be
	// stable: no timestamps, no attempt counters, no request ids.
	Err error

	reaction reaction
	after    time.Duration
}

// Error returns the text of what went wrong.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// Stalled says that a person has to act: Ready is False, Stalled is True, and nothing is
// retried until the object, or something that it refers to, changes.
func Stalled(reason, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...), reaction: stall}
}

// Waiting says that something else has to happen first: Ready is False, Reconciling is
// True. An event wakes the object; after, where it is not zero, is the latest time to
// look again.
func Waiting(reason string, after time.Duration, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...), reaction: wait, after: after}
}

// Failed says that a try failed and is worth repeating: Ready is False, Reconciling is
// True, and the next try follows after a back-off that grows.
func Failed(reason, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...), reaction: retry}
}

// IsStalled says whether err asks for a person to act.
func IsStalled(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.reaction == stall
}

// asError returns err as an Error; one that is none becomes a retry with fallback as its reason.
func asError(err error, fallback string) *Error {
	var e *Error
	if errors.As(err, &e) {
		return &Error{Reason: e.Reason, Err: err, reaction: e.reaction, after: e.after}
	}
	return &Error{Reason: fallback, Err: err}
}
