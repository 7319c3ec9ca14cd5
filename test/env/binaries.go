package env

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// stagesFile, next to the binaries, holds the kwok stages that drive Pods and the fake Node.
const stagesFile = "kwok-stages.yaml"

// The nested modules that pin what is built, relative to the repository's root.
const (
	controlPlaneModule = "test/controlplane"
	volumesModule      = "test/controlplane/volumes"
	nodeModule         = "test/controlplane/node"
)

// program is one command of the control plane, the package that it is built from, and how go build
// names it: after the package, without its major version.
type program struct{ name, pkg, built string }

// programSet is what is built together, from one module into one directory.
type programSet struct {
	name     string // in messages
	folder   string // relative to bin/k8s
	module   string
	programs []program
	// version names the module whose version the programs report.
	version string
	// files adds what the programs need beside them.
	files func(ctx context.Context, module, dir string) error
}

var controlPlane = programSet{
	name:    "control plane",
	module:  controlPlaneModule,
	version: "k8s.io/kubernetes",
	programs: []program{
		{"etcd", "go.etcd.io/etcd/server/v3", "server"},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"},
		{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"},
		{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"},
		{"kubectl", "k8s.io/kubernetes/cmd/kubectl", "kubectl"},
		{"kwok", "sigs.k8s.io/kwok/cmd/kwok", "kwok"},
	},
	files: writeStages,
}

// Binaries returns the directory that holds the control plane's programs: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok.
//
// KUBEBUILDER_ASSETS takes precedence if it is set. Otherwise they are built from the nested module
// test/controlplane into bin/k8s, which takes minutes the first time and no time as long as that
// module does not change. It needs Go but no C compiler. If several processes call it at once, only
// one builds.
func Binaries(ctx context.Context) (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, nil
	}
	return controlPlane.ready(ctx)
}

// ready returns the directory with the set's programs, after building them if they are missing or
// outdated.
func (s programSet) ready(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "k8s", s.folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create directory for %s: %w", s.name, err)
	}
	want, err := s.stamp(root)
	if err != nil {
		return "", err
	}
	if built(dir, want) {
		return dir, nil
	}
	lock, err := lockFile(filepath.Join(dir, ".lock"), wait)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	if built(dir, want) { // by the process that held the lock
		return dir, nil
	}
	if err := s.build(ctx, root, dir); err != nil {
		return "", fmt.Errorf("build %s: %w", s.name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".stamp"), []byte(want), 0o600); err != nil {
		return "", fmt.Errorf("mark %s as built: %w", s.name, err)
	}
	return dir, nil
}

// Root returns the repository's root: the nearest directory at or above the working directory whose
// go.mod is Waybill's.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module waybill.dev/waybill\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find repository: no directory above the working directory holds Waybill's go.mod")
		}
		dir = parent
	}
}

func built(dir, want string) bool {
	have, err := os.ReadFile(filepath.Join(dir, ".stamp"))
	return err == nil && string(have) == want
}

// stamp returns a hash that changes when the programs to build change.
func (s programSet) stamp(root string) (string, error) {
	input := []byte(fmt.Sprint(runtime.Version(), runtime.GOARCH, buildFlags("version"), s.programs))
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, s.module, name))
		if err != nil {
			return "", fmt.Errorf("read pinned versions: %w", err)
		}
		sum := sha256.Sum256(content)
		input = append(input, sum[:]...)
	}
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:]), nil
}

// buildFlags returns flags for small binaries. None of them changes how a package is compiled, so
// that packages which Waybill uses in the same version, too, are compiled once for both: that is
// half of them. An API server that was not built by Kubernetes' own scripts has no version to
// report unless it is set here.
func buildFlags(version string) []string {
	return []string{"-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=" + version}
}

func (s programSet) build(ctx context.Context, root, dir string) error {
	started := time.Now()
	progress := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, s.name+": "+format+"\n", args...)
	}
	progress("building into %s; minutes the first time", dir)
	module := filepath.Join(root, s.module)
	version, err := goCommand(ctx, module, "list", "-m", "-f", "{{.Version}}", s.version)
	if err != nil {
		return err
	}
	if err := s.buildPrograms(ctx, module, dir, buildFlags(version)); err != nil {
		return err
	}
	if err := s.files(ctx, module, dir); err != nil {
		return err
	}
	progress("built in %s", time.Since(started).Round(time.Second))
	return nil
}

// buildPrograms builds all programs with one command, so that one is linked while others are still
// compiled.
func (s programSet) buildPrograms(ctx context.Context, module, dir string, flags []string) error {
	fresh, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	args := append([]string{"build", "-o", fresh + string(filepath.Separator)}, flags...)
	for _, p := range s.programs {
		args = append(args, p.pkg)
	}
	if _, err := goCommand(ctx, module, args...); err != nil {
		return err
	}
	// A running program keeps its file, and a half-written file never has the final name.
	for _, p := range s.programs {
		if err := os.Rename(filepath.Join(fresh, p.built), filepath.Join(dir, p.name)); err != nil {
			return err
		}
	}
	return nil
}

// writeStages collects the stages that come with kwok into one file.
func writeStages(ctx context.Context, module, dir string) error {
	kwok, err := goCommand(ctx, module, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, set := range []string{"node/fast", "node/heartbeat-with-lease", "pod/fast"} {
		files, err := filepath.Glob(filepath.Join(kwok, "kustomize", "stage", set, "*.yaml"))
		if err != nil {
			return fmt.Errorf("list stages %s: %w", set, err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			b, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read stage: %w", err)
			}
			fmt.Fprintf(&all, "---\n%s\n", b)
		}
	}
	return os.WriteFile(filepath.Join(dir, stagesFile), all.Bytes(), 0o600)
}

// goCommand runs the go tool in dir and returns what it printed to standard output.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var out, failed bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &failed
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, failed.String())
	}
	return strings.TrimSpace(out.String()), nil
}
