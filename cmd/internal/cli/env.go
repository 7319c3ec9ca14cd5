package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/startup"
)

// FieldManager is the field manager of this program's writes.
const FieldManager = "waybill-cli"

// Env is the environment of a command: its streams and the flags that all commands have.
type Env struct {
	genericiooptions.IOStreams

	// Version of the program.
	Version string

	// SystemNamespace is the namespace in which Waybill keeps the credentials of sources.
	SystemNamespace string

	flags   *genericclioptions.ConfigFlags
	cluster string // --cluster
}

// NewEnv returns an environment with these streams. version is the one that the linker set; if it
// is empty, Go's build information is used.
func NewEnv(streams genericiooptions.IOStreams, version string) *Env {
	if version == "" {
		version = buildVersion()
	}
	flags := genericclioptions.NewConfigFlags(false)
	// The rest of kubectl's flags describe a kubeconfig on the command line. An actual kubeconfig
	// is better for that, and --cluster means something else here.
	flags.CacheDir, flags.ClusterName, flags.AuthInfoName = nil, nil, nil
	flags.BearerToken, flags.Username, flags.Password = nil, nil, nil
	flags.APIServer, flags.TLSServerName, flags.Insecure = nil, nil, nil
	flags.CertFile, flags.KeyFile, flags.CAFile = nil, nil, nil
	flags.ImpersonateUID, flags.ImpersonateUserExtra, flags.DisableCompression = nil, nil, nil
	return &Env{IOStreams: streams, Version: version, flags: flags}
}

// AddFlags adds the flags that all commands have.
func (e *Env) AddFlags(flags *pflag.FlagSet) {
	e.flags.AddFlags(flags)
	flags.StringVar(&e.cluster, "cluster", "",
		"Act in this user cluster: [NAMESPACE/]NAME of a KubernetesCluster of the hub that the kubeconfig points at, or SEED/[NAMESPACE/]NAME of one of a seed")
	flags.StringVar(&e.SystemNamespace, "system-namespace", v1alpha1.DefaultSystemNamespace,
		"Namespace that Waybill runs in")
}

// AddHubFlags adds flags that say which the hub is, for commands whose own --kubeconfig and --context mean
// another cluster.
func (e *Env) AddHubFlags(flags *pflag.FlagSet) {
	flags.StringVar(e.flags.KubeConfig, "hub-kubeconfig", "", "Kubeconfig of the hub; that of kubectl unless given")
	flags.StringVar(e.flags.Context, "hub-context", "", "Context of the hub in its kubeconfig; the current one unless given")
}

// HubKubeconfig returns the kubeconfig that the command line names for the hub; empty if it names none.
func (e *Env) HubKubeconfig() string { return *e.flags.KubeConfig }

// Namespace returns the namespace that the command line or the kubeconfig gives, and whether it is
// from the command line.
func (e *Env) Namespace() (name string, explicit bool, err error) {
	name, _, err = e.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", false, explainConfig(err)
	}
	_, explicit = e.NamespaceOffline()
	return name, explicit, nil
}

// NamespaceOffline returns the namespace that the command line gives, else `default`, and whether it is
// from the command line. It reads no kubeconfig.
func (e *Env) NamespaceOffline() (name string, explicit bool) {
	if given := e.flags.Namespace; given != nil && *given != "" {
		return *given, true
	}
	return metav1.NamespaceDefault, false
}

// Hub returns the cluster that the kubeconfig points at, whatever --cluster says.
func (e *Env) Hub() (*fleet.Cluster, error) {
	if given := e.flags.KubeConfig; given != nil {
		if err := startup.CheckKubeconfig(*given); err != nil {
			return nil, err
		}
	}
	config, err := e.flags.ToRESTConfig()
	if err != nil {
		return nil, explainConfig(err)
	}
	if !e.Configured() {
		return nil, errNoCluster // the default is a server on localhost, which was not configured
	}
	return fleet.NewHub(e.contextName(), e.Prepared(config)), nil
}

// Prepared returns a copy of the configuration of a cluster, for requests of this program.
func (e *Env) Prepared(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1 // limiting requests is up to the API server
	config.UserAgent = "waybill/" + e.Version
	config.WarningHandler = rest.NewWarningWriter(e.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return config
}

// Configured reports whether a kubeconfig, or the Pod that the program runs in, provides a cluster.
func (e *Env) Configured() bool {
	raw, err := e.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil || len(raw.Clusters) > 0 {
		return true // the error is reported when the cluster is used
	}
	config, err := e.flags.ToRESTConfig()
	return err == nil && config.BearerTokenFile != ""
}

// Target returns the cluster to act in: the one that --cluster names, else the one that the
// kubeconfig points at.
func (e *Env) Target(ctx context.Context) (*fleet.Cluster, error) {
	hub, err := e.Hub()
	if err != nil || e.cluster == "" {
		return hub, err
	}
	if e.Impersonates() {
		return nil, errImpersonated
	}
	return hub.Named(ctx, strings.Split(e.cluster, "/"))
}

// Place returns the cluster to act in, with the hub that drives it. Warnings go to the error stream.
func (e *Env) Place(ctx context.Context) (fleet.Place, error) {
	hub, err := e.Hub()
	if err != nil {
		return fleet.Place{}, err
	}
	target := hub
	if e.cluster != "" {
		if target, err = e.Target(ctx); err != nil {
			return fleet.Place{}, err
		}
	}
	place := fleet.NewPlace(hub, target, e.SystemNamespace, e.Warnf)
	place.Impersonated = e.Impersonates()
	return place, nil
}

// NamesCluster reports whether --cluster is given.
func (e *Env) NamesCluster() bool { return e.cluster != "" }

// Impersonates reports whether the command line names another user or group.
func (e *Env) Impersonates() bool {
	return e.flags.Impersonate != nil && *e.flags.Impersonate != "" || e.flags.ImpersonateGroup != nil && len(*e.flags.ImpersonateGroup) > 0
}

// Context returns the context of a command. It ends after timeout, unless that is zero.
func (e *Env) Context(cmd *cobra.Command, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(cmd.Context())
	}
	return context.WithTimeout(cmd.Context(), timeout)
}

// Warnf writes a line to the error stream. What it quotes from files and clusters cannot steer a
// terminal.
func (e *Env) Warnf(format string, args ...any) {
	fmt.Fprintln(e.ErrOut, printers.EscapeTerminal("warning: "+fmt.Sprintf(format, args...)))
}

// contextName returns the kubeconfig context in use.
func (e *Env) contextName() string {
	if name := e.flags.Context; name != nil && *name != "" {
		return *name
	}
	raw, err := e.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil || raw.CurrentContext == "" {
		return "this cluster"
	}
	return raw.CurrentContext
}

// buildVersion returns the version of the module, `devel` if the program was built from a working
// copy.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

var errNoCluster = errors.New("no cluster is configured: set --kubeconfig or the variable KUBECONFIG to a kubeconfig of the hub")

// errImpersonated: the user did not ask for the rights of the user of a kubeconfig in the hub.
var errImpersonated = errors.New("--as and --as-group are for the cluster of the kubeconfig, and --cluster acts there as the kubeconfig in the hub says: " +
	"to act as another user in a user cluster, use a kubeconfig of it")

// explainConfig explains what to do about a kubeconfig that cannot be used.
func explainConfig(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errNoCluster
	}
	return fmt.Errorf("load kubeconfig: %w", err)
}
