package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
	"waybill.dev/waybill/test/program"
)

// system is the namespace that Waybill runs in.
const system = "waybill-system"

// stage holds everything that the story is played on. The chapter `From nothing` sets its fields,
// in the order of its steps.
type stage struct {
	say *narrator
	// open opens a view that lives as long as the demo.
	open func(*env.Cluster, observe.Of) (*observe.View, error)

	bin      string // folder with Waybill's programs
	hub      *place
	seed     *place // nil without one
	berlin   *place
	dublin   *place
	server   *env.GitServer
	repo     *env.GitRepo
	charts   *env.HelmRepo
	registry *env.Registry

	programs []running
	pushed   time.Time // when the last git push returned
}

// running is a running Waybill program.
type running struct {
	name    string
	process *env.Process
}

// place is a cluster with its open views.
type place struct {
	*env.Cluster
	open  func(*env.Cluster, observe.Of) (*observe.View, error)
	mu    sync.Mutex
	views map[observe.Of]*observe.View
}

func newStage(ctx context.Context, w io.Writer) *stage {
	return &stage{say: newNarrator(w), open: func(c *env.Cluster, of observe.Of) (*observe.View, error) {
		return observe.Open(ctx, c.RESTConfig(), of)
	}}
}

func (s *stage) place(c *env.Cluster) *place {
	return &place{Cluster: c, open: s.open, views: map[observe.Of]*observe.View{}}
}

// home is where the KubernetesClusters of the user clusters are: the seed, or else the hub.
func (s *stage) home() *place {
	if s.seed != nil {
		return s.seed
	}
	return s.hub
}

// places returns all clusters that were started.
func (s *stage) places() []*place {
	return slices.DeleteFunc([]*place{s.hub, s.seed, s.berlin, s.dublin}, func(p *place) bool { return p == nil })
}

// users returns the user clusters.
func (s *stage) users() []*place { return []*place{s.berlin, s.dublin} }

// view returns the view of some objects, and opens it if there is none yet.
func (p *place) view(of observe.Of) (*observe.View, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.views[of]; v != nil {
		return v, nil
	}
	v, err := p.open(p.Cluster, of)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", p.Name(), err)
	}
	p.views[of] = v
	return v, nil
}

// until waits until exactly want objects match.
func (p *place) until(ctx context.Context, of observe.Of, want int, match observe.Match) error {
	v, err := p.view(of)
	if err != nil {
		return err
	}
	if err := v.Until(ctx, want, match); err != nil {
		return fmt.Errorf("cluster %s: %w", p.Name(), err)
	}
	return nil
}

// each calls do for several places in parallel.
func each(ctx context.Context, places []*place, do func(context.Context, *place) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range places {
		group.Go(func() error { return do(ctx, p) })
	}
	return group.Wait()
}

// kubectl shows and runs a kubectl command against a place. It returns the output.
func (s *stage) kubectl(ctx context.Context, p *place, args ...string) (string, error) {
	s.say.command("kubectl --context " + p.Name() + " " + shown(args))
	return p.Kubectl(ctx, "", args...)
}

// waybill shows and runs a command of the CLI against the hub. It returns the output.
func (s *stage) waybill(ctx context.Context, args ...string) (string, error) {
	s.say.command("waybill " + shown(args))
	return s.run(ctx, s.hub, args)
}

// waybillAt shows and runs a command of the CLI against a place. It returns the output.
func (s *stage) waybillAt(ctx context.Context, p *place, args ...string) (string, error) {
	s.say.command("waybill --context " + p.Name() + " " + shown(args))
	return s.run(ctx, p, args)
}

func (s *stage) run(ctx context.Context, p *place, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program.CLI), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.KubeconfigFile())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("waybill %s: %w: %s", shown(args), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// shown returns a command line as one would type it.
func shown(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		if quoted[i] = a; strings.ContainsAny(a, ` "{}[]*'`) {
			quoted[i] = "'" + a + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// commit commits the changes in the working copy, pushes them, and makes the GitSyncs look at once.
// Time counts from the end of the push.
func (s *stage) commit(ctx context.Context, message string, syncs ...string) error {
	s.say.command("git commit -m '" + message + "' && git push")
	for _, args := range [][]string{
		{"add", "--all"},
		{"commit", "--quiet", "--message=" + message},
		{"push", "--quiet", "origin", "HEAD"},
	} {
		if _, err := s.repo.Git(ctx, args...); err != nil {
			return err
		}
	}
	s.pushed = time.Now()
	if len(syncs) == 0 {
		return nil
	}
	args := []string{"reconcile", "-n", system, "--wait=false"}
	for _, name := range syncs {
		args = append(args, "gitsync/"+name)
	}
	_, err := s.waybill(ctx, args...)
	return err
}

// edit replaces text in a file of the working copy. It fails if there is nothing to replace, so
// that the story stays in line with examples/.
func (s *stage) edit(path, old, replacement string) error {
	file := filepath.Join(s.repo.Dir(), filepath.FromSlash(path))
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	if !strings.Contains(string(content), old) {
		return fmt.Errorf("edit %s: it does not hold %q", path, old)
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(string(content), old, replacement)), 0o600)
}
