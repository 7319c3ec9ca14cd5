package cli

import (
	"errors"
	"fmt"
	"io"
)

// Exit codes of the program.
const (
	// ExitOK: done, and nothing is wrong.
	ExitOK = 0

	// ExitNegative: done, and the answer is no: a file is invalid, an object did not become
	// ready, a diff is not empty.
	ExitNegative = 1

	// ExitError: not done.
	ExitError = 2
)

// ErrNegative ends a command that has done its work and printed everything, with ExitNegative.
// Other errors end it with ExitError and are printed.
var ErrNegative = errors.New("negative result")

// Finish prints err, unless it is ErrNegative, and returns the exit code.
func Finish(err error, errOut io.Writer) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrNegative):
		return ExitNegative
	default:
		fmt.Fprintf(errOut, "error: %s\n", err)
		return ExitError
	}
}
