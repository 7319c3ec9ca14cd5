package cli

import (
	"errors"
	"fmt"
	"io"

	"k8s.io/cli-runtime/pkg/printers"
)

// Exit codes of the program.
const (
	// exitOK: done, and nothing is wrong.
	exitOK = 0

	// exitNegative: done, and the answer is no: a file is invalid, an object did not become
	// ready, a diff is not empty.
	exitNegative = 1

	// exitError: not done.
	exitError = 2
)

// ErrNegative ends a command that has done its work and printed everything, with exitNegative.
// Other errors end it with exitError and are printed.
var ErrNegative = errors.New("negative result")

// Finish prints err, unless it is ErrNegative, and returns the exit code.
func Finish(err error, errOut io.Writer) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, ErrNegative):
		return exitNegative
	default:
		fmt.Fprintln(errOut, printers.EscapeTerminal("error: "+err.Error())) // it may quote files and clusters
		return exitError
	}
}
