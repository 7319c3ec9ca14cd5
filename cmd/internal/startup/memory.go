package startup

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// LimitMemory tells the garbage collector how much memory the process may use: nine tenths of what
// its container may, after beside is taken off, which is what its child processes use. It returns
// that limit, or 0 if there is none: GOMEMLIMIT takes precedence, and a container may have no limit.
func LimitMemory(beside int64) int64 {
	if os.Getenv("GOMEMLIMIT") != "" {
		return 0
	}
	limit := memoryLimit("/", beside)
	if limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	return limit
}

// memoryLimit reads the files of a system whose root is given. However much its children use, a
// process gets a quarter of its container: with less it would do nothing but collect garbage.
func memoryLimit(root string, beside int64) int64 {
	container := containerMemory(root)
	if container == 0 {
		return 0
	}
	return max(container-beside, container/4) / 10 * 9
}

// containerMemory returns the memory limit of the cgroup that the process is in, in version 2 or
// version 1 of cgroups; 0 if there is none.
func containerMemory(root string) int64 {
	own := "/"
	if content, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup")); err == nil {
		for line := range strings.Lines(string(content)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				own = path
			}
		}
	}
	groups := filepath.Join(root, "sys/fs/cgroup")
	for _, file := range []string{
		filepath.Join(groups, own, "memory.max"),
		filepath.Join(groups, "memory.max"), // where the path is that of the host
		filepath.Join(groups, "memory/memory.limit_in_bytes"),
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(string(bytes.TrimSpace(content)), 10, 64)
		// Version 2 says `max` where there is no limit; version 1 a number close to the largest.
		if err != nil || limit <= 0 || limit > math.MaxInt64/2 {
			return 0
		}
		return limit
	}
	return 0
}
