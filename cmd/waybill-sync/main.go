/*
Waybill-sync runs the controllers: it pulls from git, maintains the catalog and the inventory of
clusters, and installs applications in them.
*/
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/cmd/internal/logging"
	"waybill.dev/waybill/cmd/internal/startup"
	"waybill.dev/waybill/sync/controllers/kubernetescluster/agent"
	"waybill.dev/waybill/sync/render/isolated"
)

// version is set when the program is built.
var version = "unknown"

func main() {
	isolated.Main()
	os.Exit(startup.ExitCode(os.Stderr, programName, run(ctrl.SetupSignalHandler(), os.Args[1:])))
}

// minRenderMemory is what a process needs to render anything.
const minRenderMemory = 64 << 20

// options of the program. The usage text of each flag documents them.
type options struct {
	kubeconfig      string
	systemNamespace string
	controllers     []string
	cacheDir        string
	cacheSize       resource.QuantityValue
	renderMemory    resource.QuantityValue
	metadataDir     string
	clusterSelector string
	watchNamespace  string
	credentials     string
	defaultAccount  string
	agentImage      string
	metricsAddress  string
	healthAddress   string
	leaderElect     bool
	leaderID        string
	workers         int
	actions         int
	allowExec       bool
	allowInsecure   bool
	// allowLocalSources lets sources be on this machine.
	allowLocalSources bool
	shutdownGrace     time.Duration
	log               logger.Options
}

func parse(args []string) (*options, error) {
	o := &options{
		cacheSize:    resource.QuantityValue{Quantity: resource.MustParse("10Gi")},
		renderMemory: resource.QuantityValue{Quantity: *resource.NewQuantity(isolated.DefaultMemory, resource.BinarySI)},
	}
	flags := pflag.NewFlagSet(programName, pflag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the hub; default: $KUBECONFIG, else the cluster that the program runs in")
	flags.StringVar(&o.systemNamespace, "system-namespace", defaultSystemNamespace, "namespace of Waybill's own objects and of source credentials")
	flags.StringSliceVar(&o.controllers, "controllers", []string{roleAll}, "controllers, or roles, to run: "+known())
	flags.StringVar(&o.cacheDir, "cache-dir", filepath.Join(os.TempDir(), "waybill"), "folder for git mirrors and charts; safe to lose")
	flags.Var(&o.cacheSize, "cache-size", "how much the cache-dir may hold; unused git mirrors are removed to make room")
	flags.Var(&o.renderMemory, "render-memory", "how much memory rendering one chart or kustomization may take; two are rendered at a time, in processes of their own")
	flags.StringVar(&o.metadataDir, "metadata-directory", "", "folder for definitions of snapshots whose class says metadataType OnDisk; it must outlive the process; default: none, such snapshots fail")
	flags.StringVar(&o.clusterSelector, "cluster-selector", "", "label selector of the KubernetesClusters that this process serves; default: all")
	flags.StringVar(&o.watchNamespace, "watch-namespace", "", "serve the KubernetesClusters, KubernetesApplications and Secrets of this namespace of the hub alone, and need rights in no other; for the role driver, implies --credentials-namespace=cluster; default: all namespaces")
	flags.StringVar(&o.credentials, "credentials-namespace", credentialsOfSystem, "where installations get source credentials from: system, the system namespace, or cluster, the namespace of the KubernetesCluster, to which the role hub then copies those that are needed there")
	flags.StringVar(&o.defaultAccount, "default-service-account", "", "ServiceAccount of their namespaces that installations act as where neither they nor their definitions name one; default: none, Waybill's own identity")
	flags.StringVar(&o.agentImage, "agent-image", "", "image that spec.agent of a KubernetesCluster installs, as REPOSITORY:TAG or REPOSITORY@sha256:DIGEST; default: that of the chart")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 for none")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "let one process of several lead, by a Lease in the system namespace")
	flags.StringVar(&o.leaderID, "leader-election-id", programName, "name of that Lease; processes that run other controllers need another one")
	flags.IntVar(&o.workers, "workers", 0, "GitSyncs, and resources of applications, that are reconciled at a time; default: 8")
	flags.IntVar(&o.actions, "actions-per-cluster", 0, "Helm actions and applies of installations, and resources of applications, at a time in each cluster; default: 10")
	flags.BoolVar(&o.allowExec, "allow-kubeconfig-exec", false, "accept kubeconfigs that run programs of this machine")
	flags.BoolVar(&o.allowInsecure, "allow-kubeconfig-insecure", false, "accept kubeconfigs that do not check the server's certificate")
	flags.BoolVar(&o.allowLocalSources, "allow-local-sources", false, "let git repositories, charts and registries be at loopback, link-local and cloud metadata addresses")
	flags.DurationVar(&o.shutdownGrace, "shutdown-grace", 10*time.Second, "how long Helm actions, applies and deliveries that are running may go on after a signal; the whole shutdown may take 30s longer")
	o.log.BindFlags(flags)
	if err := startup.Parse(flags, args); err != nil {
		return nil, err
	}
	if o.workers < 0 || o.actions < 0 {
		return nil, errors.New("--workers and --actions-per-cluster cannot be negative")
	}
	if o.cacheSize.Sign() <= 0 {
		return nil, errors.New("--cache-size must be positive")
	}
	if o.renderMemory.Value() < minRenderMemory {
		return nil, errors.New("--render-memory must be at least 64Mi")
	}
	if o.shutdownGrace < 0 {
		return nil, errors.New("--shutdown-grace cannot be negative")
	}
	if err := agent.CheckImage(o.agentImage); err != nil {
		return nil, fmt.Errorf("--agent-image: %w", err)
	}
	if _, err := labels.Parse(o.clusterSelector); err != nil {
		return nil, fmt.Errorf("--cluster-selector: %w", err)
	}
	if err := o.restrict(); err != nil {
		return nil, err
	}
	return o, startup.CheckAccount(o.defaultAccount)
}

// Values of --credentials-namespace.
const (
	credentialsOfSystem  = "system"
	credentialsOfCluster = "cluster"
)

// restrict checks the flags that say which namespaces of the hub the process needs.
func (o *options) restrict() error {
	if o.credentials != credentialsOfSystem && o.credentials != credentialsOfCluster {
		return fmt.Errorf("--credentials-namespace: %q is unknown, use %s or %s", o.credentials, credentialsOfSystem, credentialsOfCluster)
	}
	if o.watchNamespace == "" {
		return nil
	}
	o.credentials = credentialsOfCluster
	if selected, err := selectControllers(o.controllers); err == nil && !onlyDriver(selected) {
		return errors.New("--watch-namespace is for the role driver: set --controllers=driver")
	}
	return nil
}

// childMemory returns how much memory the child processes take beside this one, in the same container.
func (o *options) childMemory(selected map[string]bool) int64 {
	if onlyLocal(selected) {
		return 0
	}
	return isolated.DefaultProcesses * o.renderMemory.Value()
}

// run starts everything and returns when ctx ends, or with an error.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	logging.Setup(o.log)
	selected, err := selectControllers(o.controllers)
	if err != nil {
		return err
	}
	config, err := startup.LoadConfig(o.kubeconfig, programName, version)
	if err != nil {
		return err
	}
	limit := startup.LimitMemory(o.childMemory(selected))
	ctrl.Log.Info("start", "version", version, "controllers", slices.Sorted(maps.Keys(selected)), "memoryLimit", limit)
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	if err := setup(ctx, mgr, o, selected); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
