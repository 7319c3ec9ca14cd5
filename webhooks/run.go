package webhooks

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/rewind"
	"waybill.dev/waybill/webhooks/certificate"
	"waybill.dev/waybill/webhooks/inject"
	"waybill.dev/waybill/webhooks/intake"
	"waybill.dev/waybill/webhooks/registration"
)

// Options of a server.
type Options struct {
	// Registration configures where API servers find the server and how its certificate is kept.
	// Run sets its Hooks, Injections and Holder; its Listen is the host:port that the server
	// listens on.
	Registration registration.Options

	// MetricsAddress is the host:port of /metrics; "0" for none.
	MetricsAddress string

	// HealthAddress is the host:port of /healthz and /readyz; "0" for none.
	HealthAddress string

	// Clients are the callers that are answered. Default: any caller.
	Clients intake.Clients

	// PodDryRun has the Pod of a health check tried out, which takes the right to create Pods in
	// the namespaces of Applications.
	PodDryRun bool

	// ParseKubeconfig reads the kubeconfigs of user clusters, so that templates of
	// KubernetesApplications can be tried out in the cluster that they are scheduled to. If nil,
	// they are not tried out.
	ParseKubeconfig func([]byte) (*rest.Config, error)

	// DefaultServiceAccount is the flag of that name of waybill-sync: what installations act as where
	// neither they nor their definitions name a ServiceAccount.
	DefaultServiceAccount string

	// PodDryRunTimeout bounds the dry run of the Pod of a health check, including the webhooks of
	// others, and RemoteDryRunTimeout that of templates in a user cluster. A decision that takes
	// longer is made without, and warns of it. Default: 3s each.
	PodDryRunTimeout, RemoteDryRunTimeout time.Duration
}

// defaultDryRunTimeout leaves the rest of a decision enough of its own time.
const defaultDryRunTimeout = 3 * time.Second

// Run serves admission for the cluster that config reaches until ctx ends, and then for as long as
// API servers may still send requests according to the registration.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	holder := &certificate.Holder{}
	o.Registration.Hooks, o.Registration.Holder = Hooks(), holder
	mgr, err := newManager(config, o, holder)
	if err != nil {
		return err
	}
	if err := register(metrics.Registry, slices.Concat(registration.Metrics(), inject.Metrics(), intake.Metrics())...); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	injector, err := inject.Setup(mgr, o.Registration.Namespace)
	if err != nil {
		return err
	}
	o.Registration.Injections = injector.Injections
	registrar, err := registration.Setup(mgr, o.Registration)
	if err != nil {
		return err
	}
	injector.OnChange(registrar.Wake)
	if err := Setup(mgr, metrics.Registry, o, injector.Index()); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("registration", registrar.Ready); err != nil {
		return err
	}
	return startAndDrain(ctx, mgr, registrar)
}

// startAndDrain keeps the manager running after ctx ends until the registrar has handed over.
func startAndDrain(ctx context.Context, mgr manager.Manager, registrar *registration.Registrar) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	drainErr := registrar.Drain(running)
	stop()
	if err := <-ended; err != nil {
		return err
	}
	return drainErr
}

func newManager(config *rest.Config, o Options, holder *certificate.Holder) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	host, port, err := splitAddress(o.Registration.Listen)
	if err != nil {
		return nil, err
	}
	objects := registration.CacheObjects(o.Registration.Namespace)
	maps.Copy(objects, inject.CacheObjects())
	guard := rewind.NewGuard()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			NewInformer:                 guard.NewInformer,
			ByObject:                    objects,
			DefaultTransform:            trim,
			ReaderFailOnMissingInformer: true,
		},
		Metrics:                metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress: o.HealthAddress,
		WebhookServer: intake.NewServer(intake.Options{
			Options: webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){holder.Configure}},
			Clients: o.Clients, Timeout: decisionTimeout,
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return mgr, mgr.Add(guard)
}

func splitAddress(address string) (host string, port int, err error) {
	host, name, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("parse listen address: %w", err)
	}
	port, err = strconv.Atoi(name)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("parse listen address: %q is not a port", name)
	}
	return host, port, nil
}
