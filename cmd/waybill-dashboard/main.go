/*
Waybill-dashboard serves the dashboard of a hub to all who may sign in, each with their own
rights: with an account of its own, it watches Waybill's kinds and impersonates those who use it.
*/
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/dashboard"
	"waybill.dev/waybill/cmd/internal/logging"
	"waybill.dev/waybill/cmd/internal/startup"
	"waybill.dev/waybill/sync/render/isolated"
)

const programName = "waybill-dashboard"

// version is set when the program is built.
var version = "unknown"

func main() {
	isolated.Main() // renders for pages, if the dashboard has started it
	os.Exit(startup.ExitCode(os.Stderr, programName, run(ctrl.SetupSignalHandler(), os.Args[1:])))
}

// options of the program. The usage text of each flag documents them.
type options struct {
	kubeconfig          string
	systemNamespace     string
	url                 string
	listen              string
	certFile            string
	keyFile             string
	metricsAddress      string
	healthAddress       string
	hubName             string
	kubeconfigNamespace string
	cacheDir            string
	cacheSize           resource.QuantityValue

	issuer          string
	clientID        string
	secretFile      string
	caFile          string
	scopes          []string
	usernameClaim   string
	usernamePrefix  string
	groupsClaim     string
	groupsPrefix    string
	sessionKeyFile  string
	sessionDuration time.Duration

	proxyCA     string
	proxyNames  []string
	proxyUsers  []string
	proxyGroups []string
	log         logger.Options
}

func parse(args []string) (*options, error) {
	o := &options{cacheSize: resource.QuantityValue{Quantity: resource.MustParse("2Gi")}}
	flags := pflag.NewFlagSet(programName, pflag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the hub; default: $KUBECONFIG, else the cluster that the program runs in")
	flags.StringVar(&o.systemNamespace, "system-namespace", v1alpha1.DefaultSystemNamespace, "namespace that Waybill runs in, with the credentials of sources, which users need to read to see what comes from there")
	flags.StringVar(&o.url, "url", "", "https://HOST[:PORT] that browsers open; requests that name another host are refused")
	flags.StringVar(&o.listen, "listen", ":8443", "host:port to listen at, by TLS")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "certificate to serve with, as PEM, read again when it changes; default: one that the program signs itself, for ingresses that do not check it")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "key of --tls-cert-file")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 for none")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flags.StringVar(&o.hubName, "hub-name", "hub", "what pages call the hub")
	flags.StringVar(&o.kubeconfigNamespace, "kubeconfig-namespace", "", "namespace of the hub with kubeconfigs by which the dashboard impersonates its users in user clusters: Secret NAMESPACE.NAME of a KubernetesCluster, key kubeconfig; default: user clusters are shown to those who may read the kubeconfig of the KubernetesCluster")
	flags.StringVar(&o.cacheDir, "cache-dir", filepath.Join(os.TempDir(), programName), "folder for the charts and git mirrors that pages look into; safe to lose")
	flags.Var(&o.cacheSize, "cache-size", "how much the cache-dir may hold; what is not in use is removed to make room")
	flags.StringVar(&o.issuer, "oidc-issuer-url", "", "https address of the OIDC provider that people sign in with; this and what follows as kube-apiserver has it, so that they have the same rights as with kubectl")
	flags.StringVar(&o.clientID, "oidc-client-id", "", "client that the provider has for the dashboard; its redirect URI is --url and /sign-in/callback")
	flags.StringVar(&o.secretFile, "oidc-client-secret-file", "", "file with the secret of the client, read at each sign-in; default: a public client")
	flags.StringVar(&o.caFile, "oidc-ca-file", "", "authority of the provider's certificate, as PEM; default: those of the system")
	flags.StringSliceVar(&o.scopes, "oidc-scopes", []string{"profile", "email", "groups"}, "scopes to ask for beside openid")
	flags.StringVar(&o.usernameClaim, "oidc-username-claim", "sub", "claim with the name of the user")
	flags.StringVar(&o.usernamePrefix, "oidc-username-prefix", "", "prefix of names of users, - for none; default: none for claim email, else the issuer and #")
	flags.StringVar(&o.groupsClaim, "oidc-groups-claim", "", "claim with the groups of the user; default: no groups")
	flags.StringVar(&o.groupsPrefix, "oidc-groups-prefix", "", "prefix of names of groups")
	flags.StringVar(&o.sessionKeyFile, "session-key-file", "", "file with the keys that seal sessions, at least 32 random characters each, one on each line: the first seals, all open")
	flags.DurationVar(&o.sessionDuration, "session-duration", 8*time.Hour, "how long a session lasts; groups are those of its beginning")
	flags.StringVar(&o.proxyCA, "requestheader-client-ca-file", "", "in place of OIDC: authority that signs the client certificate of an authenticating proxy, as PEM, read again when it changes; this and what follows as kube-apiserver has it")
	flags.StringSliceVar(&o.proxyNames, "requestheader-allowed-names", nil, "common names of which the proxy's certificate must have one; default: any")
	flags.StringSliceVar(&o.proxyUsers, "requestheader-username-headers", []string{"X-Remote-User"}, "headers that have the name of the user")
	flags.StringSliceVar(&o.proxyGroups, "requestheader-group-headers", []string{"X-Remote-Group"}, "headers that have the groups of the user")
	o.log.BindFlags(flags)
	if err := startup.Parse(flags, args); err != nil {
		return nil, err
	}
	if o.url == "" {
		return nil, errors.New("give --url, the address that browsers open")
	}
	if o.cacheSize.Sign() <= 0 {
		return nil, errors.New("--cache-size must be positive")
	}
	return o, o.dashboard().Check()
}

// dashboard returns what the flags say.
func (o *options) dashboard() dashboard.Options {
	d := dashboard.Options{
		SystemNamespace: o.systemNamespace, URL: o.url, Listen: o.listen, CertFile: o.certFile, KeyFile: o.keyFile, MetricsAddress: o.metricsAddress, HealthAddress: o.healthAddress,
		SessionKeyFile: o.sessionKeyFile, SessionDuration: o.sessionDuration, HubName: o.hubName, KubeconfigNamespace: o.kubeconfigNamespace,
		CacheDir: o.cacheDir, CacheSize: o.cacheSize.Value(),
	}
	if o.issuer != "" {
		d.OIDC = &dashboard.OIDC{
			IssuerURL: o.issuer, ClientID: o.clientID, ClientSecretFile: o.secretFile, CAFile: o.caFile, Scopes: o.scopes,
			UsernameClaim: o.usernameClaim, UsernamePrefix: o.usernamePrefix, GroupsClaim: o.groupsClaim, GroupsPrefix: o.groupsPrefix,
		}
	}
	if o.proxyCA != "" {
		d.Proxy = &dashboard.Proxy{ClientCAFile: o.proxyCA, AllowedNames: o.proxyNames, UsernameHeaders: o.proxyUsers, GroupHeaders: o.proxyGroups}
	}
	return d
}

// run serves until ctx ends, or returns an error.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	logging.Setup(o.log)
	config, err := startup.LoadConfig(o.kubeconfig, programName, version)
	if err != nil {
		return err
	}
	ctrl.Log.Info("start", "version", version, "url", o.url, "memoryLimit", startup.LimitMemory(isolated.DefaultProcesses*isolated.DefaultMemory))
	if err := dashboard.Run(ctx, config, o.dashboard()); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
