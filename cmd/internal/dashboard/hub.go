package dashboard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"waybill.dev/waybill/cmd/internal/fleet"
)

// Options of a dashboard in the hub, which many use. They sign in by OIDC, or a proxy says who they are.
type Options struct {
	// URL is the address that browsers use: https://HOST[:PORT].
	URL string
	// Listen is the host:port that it answers at, by TLS.
	Listen string
	// CertFile and KeyFile are read again when they change. Without them, it signs a certificate of its own,
	// for what forwards requests to it and does not check.
	CertFile, KeyFile string
	// MetricsAddress and HealthAddress are the host:port of /metrics, and of /healthz and /readyz; "0" for none.
	MetricsAddress, HealthAddress string

	// OIDC is how people sign in; nil if a Proxy says who they are.
	OIDC *OIDC
	// SessionKeyFile has the keys that seal sessions, and SessionDuration is how long these last; for OIDC.
	SessionKeyFile  string
	SessionDuration time.Duration
	// Proxy says who people are; nil if they sign in by OIDC.
	Proxy *Proxy

	// SystemNamespace is the namespace of the hub that Waybill runs in.
	SystemNamespace string
	// HubName is what pages call the hub.
	HubName string
	// KubeconfigNamespace is the namespace of the hub with the dashboard's own kubeconfigs for user clusters: Secret
	// NAMESPACE.NAME of a KubernetesCluster, in key kubeconfig. Empty for none.
	KubeconfigNamespace string

	// CacheDir is the folder for the charts and repositories that pages look into, and CacheSize how many bytes it may hold.
	CacheDir  string
	CacheSize int64
}

// Check returns what is wrong with the options, if anything is.
func (o Options) Check() error {
	if _, err := newSite(o.URL); err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file need one another")
	}
	if (o.OIDC == nil) == (o.Proxy == nil) {
		return errors.New("give --oidc-issuer-url, or --requestheader-client-ca-file, and not both: they say who people are")
	}
	if o.OIDC != nil {
		return o.checkOIDC()
	}
	return nil
}

func (o Options) checkOIDC() error {
	issuer, err := url.Parse(o.OIDC.IssuerURL)
	if err != nil || issuer.Scheme != "https" || issuer.Host == "" {
		return fmt.Errorf("--oidc-issuer-url: %q is not an https address", o.OIDC.IssuerURL)
	}
	switch {
	case o.OIDC.ClientID == "":
		return errors.New("--oidc-issuer-url needs --oidc-client-id, the client that the provider has for the dashboard")
	case o.OIDC.UsernameClaim == "":
		return errors.New("--oidc-username-claim: which claim names the user?")
	case o.SessionKeyFile == "":
		return errors.New("--oidc-issuer-url needs --session-key-file, a file with random characters that seals sessions")
	case o.SessionDuration < time.Minute || o.SessionDuration > 7*24*time.Hour:
		return fmt.Errorf("--session-duration: %s is not between 1m and 168h", o.SessionDuration)
	}
	return nil
}

// Run serves the dashboard of the hub that config reaches until ctx ends. config is that of an account of the dashboard's
// own, which may watch Waybill's kinds and impersonate users, and needs nothing else.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: o.MetricsAddress}, HealthProbeBindAddress: o.HealthAddress,
	})
	if err != nil {
		return fmt.Errorf("connect to the hub: %w", err)
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return err
		}
	}
	if err := o.addTo(ctx, mgr, config); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addTo has a manager run the dashboard.
func (o Options) addTo(ctx context.Context, mgr manager.Manager, config *rest.Config) error {
	s, beside, err := newShared(ctx, config, o)
	if err != nil {
		return err
	}
	serving, watching, err := o.tls()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen at --listen: %w", err)
	}
	for _, run := range []manager.RunnableFunc{s.inventory.run, func(context.Context) error { return s.serve(listener, serving) }, beside, watching} {
		if run == nil {
			continue
		}
		if err := mgr.Add(run); err != nil {
			return err
		}
	}
	return nil
}

// newShared returns a dashboard for many, and what is to be run beside it; nil for nothing.
func newShared(ctx context.Context, config *rest.Config, o Options) (*server, manager.RunnableFunc, error) {
	hub := fleet.NewHub(o.HubName, config).Bounded()
	by, beside, err := o.door(hub)
	if err != nil {
		return nil, nil, err
	}
	s, err := newServer(ctx, hub, "", by)
	if err != nil {
		return nil, nil, err
	}
	s.systemNamespace, s.budget = o.SystemNamespace, newBudget()
	s.sources.dir, s.sources.size = o.CacheDir, o.CacheSize
	if by, ok := by.(*oidcDoor); ok {
		by.tell = s.fail
	}
	return s, beside, nil
}

// door returns what lets people in, and what is to be run for it; nil for nothing.
func (o Options) door(hub *fleet.Cluster) (door, manager.RunnableFunc, error) {
	at, err := newSite(o.URL)
	if err != nil {
		return nil, nil, err
	}
	users := newViewers(&reach{hub: hub, namespace: o.KubeconfigNamespace})
	if o.Proxy != nil {
		by, err := newProxyDoor(*o.Proxy, at, users)
		if err != nil {
			return nil, nil, err
		}
		return by, by.run, nil
	}
	keys, err := newSeals(o.SessionKeyFile)
	if err != nil {
		return nil, nil, err
	}
	by, err := newOIDCDoor(*o.OIDC, at, keys, users)
	if err != nil {
		return nil, nil, err
	}
	by.lasts = o.SessionDuration
	return by, nil, nil
}

// tls returns how it is served, and what follows changes of the certificate; nil if nothing does.
func (o Options) tls() (*tls.Config, manager.RunnableFunc, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.Proxy != nil {
		config.ClientAuth = tls.RequestClientCert // the door checks it: its authority may change
	}
	if o.CertFile == "" {
		at, err := newSite(o.URL)
		if err != nil {
			return nil, nil, err
		}
		certificate, key, err := certutil.GenerateSelfSignedCertKey(at.url.Hostname(), nil, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("make a certificate: %w", err)
		}
		own, err := tls.X509KeyPair(certificate, key)
		config.Certificates = []tls.Certificate{own}
		return config, nil, err
	}
	watcher, err := certwatcher.New(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read the certificate: %w", err)
	}
	config.GetCertificate = watcher.GetCertificate
	return config, watcher.Start, nil
}

// teller shows a page that says something.
type teller func(w http.ResponseWriter, r *http.Request, status int, title string, err error)
