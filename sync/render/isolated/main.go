package isolated

import (
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// command is the argument that makes a program render for another process.
const command = "render-for-parent"

// stackBytes is how large a stack may become: recursion without end shall not take all memory first.
const stackBytes = 16 << 20

// Main renders for a Builder and does not return, if that has started the program. Otherwise it does
// nothing. A program that uses a Builder calls it before anything else.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != command {
		return
	}
	out := os.Stdout
	log.SetOutput(io.Discard)                    // Helm logs values, in lines that may look like those of Go
	os.Stdout = os.Stderr                        // whatever is printed must not come between
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // it ends with the process that started it
	debug.SetMaxStack(stackBytes)
	// Where a machine has no memory left, this process goes first, unless its whole container does.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)
	limitMappings(debug.SetMemoryLimit(-1))
	serve(os.Stdin, out)
}

// untilEnd ends the process as soon as the one that started it is gone, whatever it is at.
func untilEnd(in io.Reader) io.Reader {
	out, to := io.Pipe()
	go func() {
		_, _ = io.Copy(to, in)
		os.Exit(0)
	}()
	return out
}
