package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"waybill.dev/waybill/test/env"
)

// Names of the programs, which are the folders under cmd.
const (
	Sync      = "waybill-sync"
	Webhook   = "waybill-webhook"
	Dashboard = "waybill-dashboard"
	CLI       = "waybill"
)

// Build compiles the programs into the repository's bin folder and returns its path. Several
// processes may build at once: a half-written file never has a program's name.
func Build(ctx context.Context, names ...string) (string, error) {
	root, err := env.Root()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, "bin")
	fresh := filepath.Join(bin, ".build-"+strconv.Itoa(os.Getpid()))
	// Compiled packages are shared with tests; data for debuggers is omitted only when linking.
	args := []string{"build", "-ldflags=-s -w", "-o", fresh + string(filepath.Separator)}
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return "", fmt.Errorf("build programs: %w", err)
	}
	for _, name := range names {
		args = append(args, "./cmd/"+name)
		// Go links nothing where it finds what it would link. Otherwise it replaces the file, and not what is in it.
		_ = os.Link(filepath.Join(bin, name), filepath.Join(fresh, name)) // fails for what was never built
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", errors.Join(fmt.Errorf("build programs: %w\n%s", err, out), os.RemoveAll(fresh))
	}
	for _, name := range names {
		err = errors.Join(err, os.Rename(filepath.Join(fresh, name), filepath.Join(bin, name)))
	}
	return bin, errors.Join(err, os.RemoveAll(fresh))
}
