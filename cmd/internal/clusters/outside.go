package clusters

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// outside is the cluster that is added or removed, as its administrator sees it.
type outside struct {
	client.Client
	cluster *fleet.Cluster
	name    string
	uid     string
	version string
	// server is what its kubeconfig says of the API server.
	server clientcmdapi.Cluster
}

// connect reads the kubeconfig and asks the cluster who it is. name is how messages call it.
func (a *admin) connect(ctx context.Context, env *cli.Env, name string) (*outside, error) {
	config, err := a.load(env)
	if err != nil {
		return nil, err
	}
	o := &outside{name: name, cluster: fleet.NewHub(name, config)}
	if o.server, err = serverOf(config); err != nil {
		return nil, err
	}
	if o.Client, err = o.cluster.Client(); err != nil {
		return nil, fmt.Errorf("connect to %s at %s: %w", name, config.Host, o.cluster.Explain(err))
	}
	namespace := &corev1.Namespace{}
	if err := o.Get(ctx, client.ObjectKey{Name: "kube-system"}, namespace); err != nil {
		return nil, fmt.Errorf("ask %s at %s which cluster it is: %w", name, config.Host, o.cluster.Explain(err))
	}
	o.uid = string(namespace.UID)
	served, httpClient, err := o.cluster.REST()
	if err != nil {
		return nil, err
	}
	asked, err := discovery.NewDiscoveryClientForConfigAndClient(served, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", name, o.cluster.Explain(err))
	}
	o.version = version.GitVersion
	return o, nil
}

// load reads the kubeconfig as kubectl would.
func (a *admin) load(env *cli.Env) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if a.kubeconfig == "" {
		rules.ExplicitPath = env.HubKubeconfig()
	} else {
		rules.ExplicitPath = a.kubeconfig
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("load the kubeconfig of the cluster: %w", err)
	}
	return env.Prepared(config), nil
}

// serverOf returns what the hub needs to know of an API server, with all data inline.
func serverOf(config *rest.Config) (clientcmdapi.Cluster, error) {
	switch {
	case config.Insecure:
		return clientcmdapi.Cluster{}, errors.New("the kubeconfig says insecure-skip-tls-verify, so that the hub would send its token to any server that answers: " +
			"set certificate-authority-data")
	case !strings.HasPrefix(config.Host, "https://"):
		return clientcmdapi.Cluster{}, fmt.Errorf("the server %s of the kubeconfig does not begin with https://: the hub would send its token in the clear", config.Host)
	}
	inline := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(inline); err != nil {
		return clientcmdapi.Cluster{}, fmt.Errorf("read the files of the kubeconfig: %w", err)
	}
	return clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: inline.CAData, TLSServerName: config.ServerName}, nil
}

// kubeconfig returns the one for the hub: an address, the authority that vouches for it, and a token.
func (o *outside) kubeconfig(server clientcmdapi.Cluster, token string) ([]byte, error) {
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{o.name: &server},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"waybill": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{o.name: {Cluster: o.name, AuthInfo: "waybill"}},
		CurrentContext: o.name,
	})
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig for the hub: %w", err)
	}
	return content, nil
}

// doubtful returns why the hub may not reach a server, by its address alone; empty if that is no reason for doubt.
func doubtful(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return "is this machine only"
	}
	address, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return ""
	case address.IsLoopback(), address.IsUnspecified():
		return "is this machine only"
	case address.IsLinkLocalUnicast():
		return "is a link-local address"
	case address.IsPrivate():
		return "is a private address"
	default:
		return ""
	}
}
