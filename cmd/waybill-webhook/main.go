/*
Waybill-webhook answers admission reviews for the kinds of Waybill. It registers itself,
maintains its certificates, and needs nothing but access to its cluster.
*/
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/logging"
	"waybill.dev/waybill/cmd/internal/startup"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/webhooks"
	"waybill.dev/waybill/webhooks/intake"
	"waybill.dev/waybill/webhooks/registration"
)

const programName = "waybill-webhook"

// version is set when the program is built.
var version = "unknown"

func main() {
	os.Exit(startup.ExitCode(os.Stderr, programName, run(ctrl.SetupSignalHandler(), os.Args[1:])))
}

// options of the program. The usage text of each flag documents them.
type options struct {
	kubeconfig      string
	systemNamespace string
	url             string
	service         string
	listen          string
	metricsAddress  string
	healthAddress   string
	drain           time.Duration
	unregister      bool
	clientCA        string
	clientNames     []string
	podDryRun       bool
	remoteDryRun    bool
	allowInsecure   bool
	defaultAccount  string
	log             logger.Options
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet(programName, pflag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default: $KUBECONFIG, else the cluster that the program runs in")
	flags.StringVar(&o.systemNamespace, "system-namespace", v1alpha1.DefaultSystemNamespace, "namespace of the certificate authority, the lease, and of source credentials")
	flags.StringVar(&o.url, "url", "", "https://host:port that the API server reaches this program at; default: by --service")
	flags.StringVar(&o.service, "service", programName, "Service of the system namespace that the API server reaches this program by, at port 443")
	flags.StringVar(&o.listen, "listen", ":9443", "host:port to listen at")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 for none")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flags.DurationVar(&o.drain, "drain", 5*time.Second, "how long to go on answering after a signal, until the API server asks another replica")
	flags.BoolVar(&o.unregister, "unregister-on-exit", false, "with --url: delete the webhook configurations at the end, where no other process has taken over; for demos and tests, as nothing is checked from then on")
	flags.StringVar(&o.clientCA, "client-ca-file", "", "file with the certificates, as PEM, of the authority that signs the API server's client certificate for webhooks; default: anybody may call")
	flags.StringSliceVar(&o.clientNames, "client-name", nil, "with --client-ca-file: common names, or DNS names, of which the client certificate must have one; default: any")
	flags.BoolVar(&o.podDryRun, "pod-dry-run", false, "try the Pod of a health check out by a dry run; the program then needs the right to create Pods")
	flags.BoolVar(&o.remoteDryRun, "remote-dry-run", false, "try changed templates of a KubernetesApplication out in the cluster that it is scheduled to, and warn of what that refuses; the program then reads the kubeconfigs of clusters")
	flags.BoolVar(&o.allowInsecure, "allow-kubeconfig-insecure", false, "with --remote-dry-run: accept kubeconfigs that do not check the server's certificate; those that run programs are never accepted")
	flags.StringVar(&o.defaultAccount, "default-service-account", "", "ServiceAccount that installations act as where neither they nor their definitions name one, as waybill-sync has it: who writes them must be allowed to act as it")
	o.log.BindFlags(flags)
	if err := startup.Parse(flags, args); err != nil {
		return nil, err
	}
	if o.unregister && o.url == "" {
		return nil, errors.New("--unregister-on-exit needs --url: a chart's configurations go with the chart")
	}
	if o.allowInsecure && !o.remoteDryRun {
		return nil, errors.New("--allow-kubeconfig-insecure needs --remote-dry-run: no kubeconfig is read without")
	}
	if err := o.clients().Check(); err != nil {
		return nil, fmt.Errorf("--client-ca-file, --client-name: %w", err)
	}
	return o, startup.CheckAccount(o.defaultAccount)
}

// clients returns the clients that may call.
func (o *options) clients() intake.Clients {
	return intake.Clients{CAFile: o.clientCA, Names: o.clientNames}
}

// kubeconfigParser returns the parser for kubeconfigs of user clusters; nil if none are to be read.
// Kubeconfigs may not run programs, because every admission decision would wait for them.
func (o *options) kubeconfigParser() func([]byte) (*rest.Config, error) {
	if !o.remoteDryRun {
		return nil
	}
	return func(content []byte) (*rest.Config, error) {
		return cluster.ParseKubeconfig(content, cluster.KubeconfigOptions{AllowInsecure: o.allowInsecure})
	}
}

// run serves until ctx ends, or returns an error.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	logging.Setup(o.log)
	endpoint := registration.ServiceEndpoint(o.systemNamespace, o.service)
	if o.url != "" {
		if endpoint, err = registration.ParseURL(o.url); err != nil {
			return err
		}
	}
	config, err := startup.LoadConfig(o.kubeconfig, programName, version)
	if err != nil {
		return err
	}
	ctrl.Log.Info("start", "version", version, "endpoint", endpoint.String(), "memoryLimit", startup.LimitMemory(0))
	return webhooks.Run(ctx, config, webhooks.Options{
		Registration: registration.Options{
			Namespace: o.systemNamespace, Endpoint: endpoint, Listen: o.listen, Drain: o.drain, Unregister: o.unregister,
		},
		MetricsAddress: o.metricsAddress,
		HealthAddress:  o.healthAddress,
		Clients:        o.clients(),
		PodDryRun:      o.podDryRun,

		ParseKubeconfig:       o.kubeconfigParser(),
		DefaultServiceAccount: o.defaultAccount,
	})
}
