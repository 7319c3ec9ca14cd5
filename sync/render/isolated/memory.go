package isolated

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// exitMemory is the exit code of a process that took too much memory.
	exitMemory = 3
	// sampling is how often a process checks how much memory it takes. Within that time it can write
	// to some ten MiB more.
	sampling = 10 * time.Millisecond
	// releaseAbove is how much of its memory a process may keep between two tasks, as a fraction.
	releaseAbove = 4
)

// taken returns how much memory the process takes, as GOMEMLIMIT counts it.
func taken(samples []metrics.Sample) int64 {
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// memorySamples are what taken reads.
func memorySamples() []metrics.Sample {
	return []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
}

// release gives back what a task took that was large: it must not count for the next one.
func release() {
	if taken(memorySamples()) > debug.SetMemoryLimit(-1)/releaseAbove {
		debug.FreeOSMemory()
	}
}

// limitMemory ends the process when it takes more than GOMEMLIMIT, which the garbage collector tries to
// stay below, and a tenth. It does so until the returned function is called.
func limitMemory() (stop func()) {
	limit := debug.SetMemoryLimit(-1)
	limit += limit / 10
	ticker, stopped := time.NewTicker(sampling), make(chan struct{})
	samples := memorySamples()
	go func() {
		for {
			select {
			case <-stopped:
				return
			case <-ticker.C:
				if taken(samples) > limit {
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
