package env

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// programBuilds holds the paths of the programs that this process has built.
var programBuilds struct {
	sync.Mutex
	paths map[string]string
}

// Program builds cmd/<name> as the working copy has it, once per process, and
// returns the executable's path.
func Program(ctx context.Context, name string) (string, error) {
	programBuilds.Lock()
	defer programBuilds.Unlock()
	if path, ok := programBuilds.paths[name]; ok {
		if _, err := os.Stat(path); err == nil { // StopAll may have been in between
			return path, nil
		}
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir, err := tempDir("bin")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if _, err := goCommand(ctx, root, "build", "-o", path, "./cmd/"+name); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	if programBuilds.paths == nil {
		programBuilds.paths = map[string]string{}
	}
	programBuilds.paths[name] = path
	return path, nil
}
