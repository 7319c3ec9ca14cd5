//go:build !race

package isolated

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// limitMappings has the kernel refuse memory that is far beyond the limit, which a single text can ask for
// at once. Go then ends the process with a fatal error. What was given back still counts, and what is free
// is in pieces, so that there is room for twice the limit; limitMemory ends what is between.
func limitMappings(memory int64) {
	most := uint64(mapped() + 2*memory)
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most}) // else limitMemory alone ends it
}

// unknownMappings is more than a process has mapped when it starts.
const unknownMappings = 256 << 20

// mapped returns how much writable memory the process has mapped.
func mapped() int64 {
	const data = 5 // the field of statm, in pages
	content, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(content))
	if err != nil || len(fields) <= data {
		return unknownMappings
	}
	pages, err := strconv.ParseInt(fields[data], 10, 64)
	if err != nil {
		return unknownMappings
	}
	return pages * int64(os.Getpagesize())
}
