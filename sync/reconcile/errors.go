package reconcile

import (
	"errors"
	"fmt"
	"time"
)

// reaction is how to react to an error.
type reaction int

const (
	// retry: try again after a growing back-off.
	retry reaction = iota
	// wait: something else has to happen first; an event, or a given time, enqueues the object.
	wait
	// stall: a person has to act; nothing happens before an object changes.
	stall
)

// Error carries, in addition to the underlying error, the reason to show in conditions and how to
// react. Use errors.As to find it in a chain of wrapped errors.
type Error struct {
	// Reason is shown in conditions and events. It is one of the documented constants of the API.
	Reason string
	// Err is the underlying error. Its text becomes the message of the condition and so must be
	// stable: no timestamps, no attempt counters, no request ids.
	Err error

	reaction reaction
	after    time.Duration
}

// Error returns the text of the underlying error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Stalled returns an error that requires a person to act: Ready is False, Stalled is True, and
// nothing is retried until the object, or something that it refers to, changes.
func Stalled(reason, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...), reaction: stall}
}

// Waiting returns an error that means that something else has to happen first: Ready is False,
// Reconciling is True. An event enqueues the object; after, unless zero, is the longest time until
// it is reconciled again.
func Waiting(reason string, after time.Duration, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...), reaction: wait, after: after}
}

// Failed returns an error that is worth retrying: Ready is False, Reconciling is True, and the next
// attempt follows after a growing back-off.
func Failed(reason, format string, args ...any) error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...), reaction: retry}
}

// IsStalled reports whether err requires a person to act.
func IsStalled(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.reaction == stall
}

// IsWaiting reports whether err means that something else has to happen first, and the longest time until
// it is to be tried again; zero for none.
func IsWaiting(err error) (after time.Duration, waits bool) {
	var e *Error
	if !errors.As(err, &e) || e.reaction != wait {
		return 0, false
	}
	return e.after, true
}

// ReasonOf returns the reason that err carries; empty if it carries none.
func ReasonOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// RetryAfter returns err with another pass after the given time instead of the kernel's back-off.
// Controllers use it for what a job has failed at: passes for other reasons show the failure again,
// and must not postpone the next try. err stays as it is if it is stalled or carries no reason, or
// if after is zero.
func RetryAfter(err error, after time.Duration) error {
	reason := ReasonOf(err)
	if reason == "" || IsStalled(err) || after == 0 {
		return err
	}
	return Waiting(reason, after, "%w", err)
}

// asError returns err as an Error. Any other error becomes a retry with fallback as its reason.
func asError(err error, fallback string) *Error {
	var e *Error
	if errors.As(err, &e) {
		return &Error{Reason: e.Reason, Err: err, reaction: e.reaction, after: e.after}
	}
	return &Error{Reason: fallback, Err: err}
}
