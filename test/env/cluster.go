package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// Limit is how long a test waits for something that should happen within seconds, on a busy
// machine. Only a failing test ever reaches it.
const Limit = 2 * time.Minute

// Options configures a cluster. The zero value is an API server with RBAC and
// kube-controller-manager, without Nodes.
type Options struct {
	// Name appears in errors, in the kubeconfig's context and in file names.
	// Defaults to "cluster".
	Name string
	// NoControllers omits kube-controller-manager, which takes up most of a cluster's start:
	// garbage is not collected, namespaces do not finish terminating, and workloads stay as they
	// are. Not with Pods.
	NoControllers bool
	// Pods adds kube-scheduler and kwok with one fake Node, on which Pods become
	// Running and Ready, and Jobs complete, within a second.
	Pods bool
	// Stages are further kwok stages, as YAML, for Pods that should fail or be
	// slow. Only with Pods.
	Stages string
	// Audit enables the audit log that Requests reads. It is for clusters that count requests; it
	// costs two lines in a file per request.
	Audit bool
	// CRDs are files or directories with CustomResourceDefinitions to install.
	CRDs []string
	// APIServerFlags are added to kube-apiserver's own, as --name=value.
	APIServerFlags []string
	// Own starts a cluster even where there is a pool to borrow from, for what cannot be undone.
	Own bool
}

// Cluster is a running control plane.
type Cluster struct {
	options   Options
	dir       string // files of the control plane
	home      string // files of those who use it
	bin       string // where the programs are
	port      *port
	authority *authority
	admin     *rest.Config
	kubeconf  []byte
	forget    func()
	loan      *loan // nil unless borrowed from a pool

	mu        sync.Mutex
	apiServer *Process   // nil while killed
	manager   *Process   // kube-controller-manager, also in others
	others    []*Process // everything but the API server
	beside    []func()   // called before everything else when the cluster stops
	store     *Process   // also in others
	stopOnce  sync.Once

	audit struct {
		sync.Mutex
		marked AuditMark // the latest, so that the next need not read the log from its beginning
		crash  int64     // where the log ended when the API server was last killed
	}
}

// StartCluster starts a control plane and returns when it can be used: the API server is ready,
// kube-controller-manager runs (unless NoControllers) and, with Pods, the Node is Ready. The CRDs
// of o are established.
func StartCluster(ctx context.Context, o Options) (*Cluster, error) {
	if o.Name == "" {
		o.Name = "cluster"
	}
	if o.NoControllers && o.Pods {
		return nil, fmt.Errorf("start cluster %s: Pods need controllers", o.Name)
	}
	bin, err := Binaries(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := tempDir(o.Name)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: o, dir: dir, home: dir, bin: bin}
	c.forget = track(c.Stop)
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, fmt.Errorf("start cluster %s: %w", o.Name, err)
	}
	return c, nil
}

// StartClusters starts several control planes in parallel, in the order of the options. If one
// fails, all are stopped.
func StartClusters(ctx context.Context, options ...Options) ([]*Cluster, error) {
	clusters := make([]*Cluster, len(options))
	group, ctx := errgroup.WithContext(ctx)
	for i, o := range options {
		group.Go(func() (err error) {
			clusters[i], err = StartCluster(ctx, o)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		for _, c := range clusters {
			if c != nil {
				c.Stop()
			}
		}
		return nil, err
	}
	return clusters, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	// Before the controllers: the garbage collector looks for new kinds when it starts, and then
	// only every half minute.
	if err := c.InstallCRDs(ctx, c.options.CRDs...); err != nil {
		return err
	}
	if c.options.NoControllers {
		return nil
	}
	return c.startControllers(ctx)
}

// prepare sets up everything that needs no running process: port, certificates, users.
func (c *Cluster) prepare() error {
	var err error
	if c.port, err = reservePort(); err != nil {
		return err
	}
	if c.authority, err = newAuthority("waybill-test-" + c.options.Name); err != nil {
		return err
	}
	if err := c.writeServerFiles(); err != nil {
		return err
	}
	return c.prepareAdmin()
}

// prepareAdmin sets up the administrator, in the cluster's name.
func (c *Cluster) prepareAdmin() error {
	var err error
	if c.admin, err = c.AddUser("admin", "system:masters"); err != nil {
		return err
	}
	if c.kubeconf, err = Kubeconfig(c.options.Name, c.admin); err != nil {
		return err
	}
	return os.WriteFile(c.KubeconfigFile(), c.kubeconf, 0o600)
}

// Name returns the name that the cluster was started with.
func (c *Cluster) Name() string { return c.options.Name }

// RESTConfig returns a copy of the administrator's configuration: all permissions, no client-side
// rate limit.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Kubeconfig returns the administrator's kubeconfig, with all data inline.
func (c *Cluster) Kubeconfig() []byte { return slices.Clone(c.kubeconf) }

// KubeconfigFile returns the path of a file with Kubeconfig; it is removed with the cluster.
func (c *Cluster) KubeconfigFile() string { return filepath.Join(c.home, "admin.kubeconfig") }

// Address returns the API server's host:port.
func (c *Cluster) Address() string { return c.port.addr() }

// OnStop makes Stop call stop before it kills the control plane: for servers that a test runs beside
// the cluster. The last is called first.
func (c *Cluster) OnStop(stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beside = append(c.beside, stop)
}

// Dir creates a directory that is removed with the cluster; of one that was borrowed, when it is given
// back.
func (c *Cluster) Dir(name string) (string, error) {
	dir := filepath.Join(c.home, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("create directory beside cluster %s: %w", c.options.Name, err)
	}
	return dir, nil
}

func (c *Cluster) stopBeside() {
	c.mu.Lock()
	stops := c.beside
	c.mu.Unlock()
	for _, stop := range slices.Backward(stops) {
		stop()
	}
}

// Stop kills the control plane and removes its files; one that was borrowed is given back. Stopping
// twice is allowed.
func (c *Cluster) Stop() {
	c.stopOnce.Do(func() {
		c.forget()
		c.stopBeside()
		if c.loan != nil {
			c.loan.end()
			_ = os.RemoveAll(c.home)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		processes := c.others
		if c.apiServer != nil {
			c.removeVolumes()
			processes = append(processes, c.apiServer)
		}
		var wg sync.WaitGroup
		for _, p := range processes {
			wg.Go(func() { _ = p.Kill() }) // fails only if it has ended
		}
		wg.Wait()
		if c.port != nil {
			c.port.release()
		}
		_ = os.RemoveAll(c.dir) // anything left goes with the session's directory
	})
}

// run starts one of the cluster's programs besides the API server.
func (c *Cluster) run(name string, args ...string) (*Process, error) {
	p, err := c.exec(name, args...)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others = append(c.others, p)
	return p, nil
}

func (c *Cluster) exec(name string, args ...string) (*Process, error) {
	path := filepath.Join(c.bin, name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing in %s (unset KUBEBUILDER_ASSETS to have it built)", name, c.bin)
	}
	// A tenth of the CPU time of an API server is garbage collection, by default.
	return startIn(c.dir, Command{Name: name, Path: path, Args: args, Env: []string{"GOGC=200"}})
}

// cleanupContext returns a context that bounds clean-up after the work has ended.
func cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Second)
}
