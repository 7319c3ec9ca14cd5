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
	kubernetesModule = "test/controlplane"
	kwokModule       = "test/controlplane/kwok"
	volumesModule    = "test/controlplane/volumes"
)

// program is one command of the control plane and where it comes from.
type program struct{ name, module, pkg string }

// programSet is what is built together, into one directory.
type programSet struct {
	name     string   // in messages
	folder   string   // relative to bin/k8s
	modules  []string // pin what is built; the first names a version of k8s.io/kubernetes
	programs []program
	// files adds what the programs need beside them.
	files func(ctx context.Context, root, dir string) error
}

var controlPlane = programSet{
	name:    "control plane",
	modules: []string{kubernetesModule, kwokModule},
	programs: []program{
		{"etcd", kubernetesModule, "go.etcd.io/etcd/server/v3"},
		{"kube-apiserver", kubernetesModule, "k8s.io/kubernetes/cmd/kube-apiserver"},
		{"kube-controller-manager", kubernetesModule, "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{"kube-scheduler", kubernetesModule, "k8s.io/kubernetes/cmd/kube-scheduler"},
		{"kubectl", kubernetesModule, "k8s.io/kubernetes/cmd/kubectl"},
		{"kwok", kwokModule, "sigs.k8s.io/kwok/cmd/kwok"},
	},
	files: writeStages,
}

// Binaries returns the directory that holds the control plane's programs: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok.
//
// KUBEBUILDER_ASSETS takes precedence if it is set. Otherwise they are built from the nested
// modules of test/controlplane into bin/k8s, which takes minutes the first time and no time as long
// as those modules do not change. It needs Go but no C compiler. If several processes call it at
// once, only one builds.
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
	for _, module := range s.modules {
		for _, name := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(filepath.Join(root, module, name))
			if err != nil {
				return "", fmt.Errorf("read pinned versions: %w", err)
			}
			sum := sha256.Sum256(content)
			input = append(input, sum[:]...)
		}
	}
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:]), nil
}

// buildFlags returns flags for small, reproducible binaries. An API server that was not built by
// Kubernetes' own scripts has no version to report unless it is set here.
func buildFlags(version string) []string {
	return []string{"-trimpath", "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=" + version}
}

func (s programSet) build(ctx context.Context, root, dir string) error {
	started := time.Now()
	progress := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, s.name+": "+format+"\n", args...)
	}
	progress("building into %s; minutes the first time", dir)
	version, err := goCommand(ctx, filepath.Join(root, s.modules[0]), "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	for _, p := range s.programs {
		progress("%s", p.name)
		target := filepath.Join(dir, p.name)
		args := append([]string{"build", "-o", target + ".new"}, buildFlags(version)...)
		if _, err := goCommand(ctx, filepath.Join(root, p.module), append(args, p.pkg)...); err != nil {
			return err
		}
		// A running program keeps its file, and a half-written file never has the final name.
		if err := os.Rename(target+".new", target); err != nil {
			return err
		}
	}
	if err := s.files(ctx, root, dir); err != nil {
		return err
	}
	progress("built in %s", time.Since(started).Round(time.Second))
	return nil
}

// writeStages collects the stages that come with kwok into one file.
func writeStages(ctx context.Context, root, dir string) error {
	module, err := goCommand(ctx, filepath.Join(root, kwokModule), "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, set := range []string{"node/fast", "node/heartbeat-with-lease", "pod/fast"} {
		files, err := filepath.Glob(filepath.Join(module, "kustomize", "stage", set, "*.yaml"))
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
