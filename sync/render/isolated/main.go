package isolated

import (
	"context"
	"encoding/gob"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"

	"waybill.dev/waybill/sync/render/kustomize"
)

// command is the argument that makes a program build kustomizations.
const command = "build-kustomizations"

const (
	// exitMemory is the exit code of a process that took too much memory.
	exitMemory = 3
	// stackBytes is how large a stack may become: recursion without end shall not take all memory first.
	stackBytes = 16 << 20
	// sampling is how often a process looks at how much memory it takes. Within that time it can write
	// to some ten MiB more.
	sampling = 10 * time.Millisecond
)

// Main builds kustomizations for a Builder and does not return, if that has started the program.
// Otherwise it does nothing. A program that uses a Builder calls it before anything else.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != command {
		return
	}
	out := os.Stdout
	os.Stdout = os.Stderr                        // whatever is printed must not come between
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // it ends with the process that started it
	debug.SetMaxStack(stackBytes)
	// Where a machine has no memory left, this process goes first, unless its whole container does.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)
	serve(os.Stdin, out)
}

// serve builds what it is asked to.
func serve(in io.Reader, out io.Writer) {
	from, to := gob.NewDecoder(untilEnd(in)), gob.NewEncoder(out)
	must := func(err error) {
		if err != nil {
			os.Exit(1) // nobody is there to be told
		}
	}
	ask := func(q question) (r reply) {
		must(to.Encode(turn{Question: &q}))
		must(from.Decode(&r))
		return r
	}
	tell := func(t turn) { must(to.Encode(t)) }
	for {
		var dir string
		must(from.Decode(&dir))
		build(files{ask, make(map[question]reply)}, dir, tell)
		debug.FreeOSMemory() // what it took must not count for the next one
	}
}

// build builds a kustomization, and tells the result.
func build(root files, dir string, tell func(turn)) {
	defer limitMemory()()
	objects, problems, err := kustomize.Render(context.Background(), root, dir, kustomize.Options{})
	if err != nil {
		tell(turn{Fault: faultOf(err)})
		return
	}
	for _, p := range problems {
		tell(turn{Problem: &p})
	}
	for _, o := range objects {
		encoded, err := encode(o)
		if err != nil {
			tell(turn{Fault: faultOf(err)})
			return
		}
		tell(turn{Object: encoded})
	}
	tell(turn{})
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

// limitMemory ends the process when it takes more than GOMEMLIMIT, which the garbage collector tries to
// stay below, and a tenth. It does so until the returned function is called.
func limitMemory() (stop func()) {
	limit := debug.SetMemoryLimit(-1)
	limit += limit / 10
	ticker, stopped := time.NewTicker(sampling), make(chan struct{})
	// These are what GOMEMLIMIT is about.
	taken := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	go func() {
		for {
			select {
			case <-stopped:
				return
			case <-ticker.C:
				if metrics.Read(taken); int64(taken[0].Value.Uint64()-taken[1].Value.Uint64()) > limit {
					os.Exit(exitMemory)
				}
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(stopped)
	}
}
