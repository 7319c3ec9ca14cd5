package cluster

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// KubeconfigOptions defines what a kubeconfig may hold besides inline data. The zero value allows
// nothing: permission to write a kubeconfig must not imply permission to run programs, or read
// files, where the controllers run.
type KubeconfigOptions struct {
	// AllowExec allows users[].user.exec: a program that provides the credentials. It runs with the
	// rights of the controllers.
	AllowExec bool
	// AllowInsecure allows insecure-skip-tls-verify, and servers without TLS.
	AllowInsecure bool
}

// ParseKubeconfig returns the configuration of the current context of a kubeconfig. The error
// names the field that is not allowed and what to do instead. It never contains parts of the
// kubeconfig that could be secret.
func ParseKubeconfig(content []byte, o KubeconfigOptions) (*rest.Config, error) {
	kubeconfig, err := clientcmd.Load(content)
	if err != nil {
		return nil, unreadable(err)
	}
	current, ok := kubeconfig.Contexts[kubeconfig.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("kubeconfig: current-context %q is not one of contexts: set it", kubeconfig.CurrentContext)
	}
	cluster, ok := kubeconfig.Clusters[current.Cluster]
	if !ok {
		return nil, fmt.Errorf("kubeconfig: cluster %q of context %q is not one of clusters", current.Cluster, kubeconfig.CurrentContext)
	}
	user, ok := kubeconfig.AuthInfos[current.AuthInfo]
	if !ok {
		return nil, fmt.Errorf("kubeconfig: user %q of context %q is not one of users", current.AuthInfo, kubeconfig.CurrentContext)
	}
	if refused := append(checkCluster(current.Cluster, cluster, o), checkUser(current.AuthInfo, user, o)...); len(refused) > 0 {
		return nil, fmt.Errorf("kubeconfig: %s", strings.Join(refused, "; "))
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*kubeconfig, kubeconfig.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if config.ExecProvider != nil {
		config.ExecProvider.StdinUnavailable = true
	}
	if _, err := rest.TLSConfigFor(config); err != nil {
		return nil, fmt.Errorf("kubeconfig: certificate data: %w", err)
	}
	return config, nil
}

// atLine finds the line that a YAML parser complains about.
var atLine = regexp.MustCompile(`^(?:.*: )?yaml: line (\d+): `)

// unreadable returns the error of an invalid kubeconfig. The error of the parser may quote any part of
// it, a password too, so only the line is named.
func unreadable(err error) error {
	if line := atLine.FindStringSubmatch(err.Error()); line != nil {
		return fmt.Errorf("parse kubeconfig: invalid YAML near line %s", line[1])
	}
	return errors.New("parse kubeconfig: it is not what kubectl config view --raw --flatten prints")
}

// forbidden is a field of a kubeconfig that is not allowed, and what to do instead.
type forbidden struct {
	found      bool
	field, way string
}

func checkCluster(name string, c *clientcmdapi.Cluster, o KubeconfigOptions) []string {
	return refuse(fmt.Sprintf("clusters[%s].cluster.", name), []forbidden{
		{c.CertificateAuthority != "", "certificate-authority", "is a file: put its content into certificate-authority-data, in base64"},
		{c.ProxyURL != "", "proxy-url", "would send the credentials elsewhere: make the API server reachable without it, or set a proxy for Waybill itself"},
		{c.InsecureSkipTLSVerify && !o.AllowInsecure, "insecure-skip-tls-verify", "sends the credentials to any server that answers: set certificate-authority-data"},
		{!secure(c.Server) && !o.AllowInsecure, "server", "must begin with https://"},
	})
}

func checkUser(name string, u *clientcmdapi.AuthInfo, o KubeconfigOptions) []string {
	impersonates := u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0
	return refuse(fmt.Sprintf("users[%s].user.", name), []forbidden{
		{u.ClientCertificate != "", "client-certificate", "is a file: put its content into client-certificate-data, in base64"},
		{u.ClientKey != "", "client-key", "is a file: put its content into client-key-data, in base64"},
		{u.TokenFile != "", "tokenFile", "is a file: put its content into token"},
		{u.AuthProvider != nil, "auth-provider", "is not supported: put a token or a client certificate inline"},
		{u.Exec != nil && !o.AllowExec, "exec", "would run a program beside Waybill: put a token or a client certificate inline"},
		{impersonates, "as", "is not supported, because Waybill impersonates others itself: use credentials of the user that is meant"},
	})
}

func refuse(prefix string, fields []forbidden) []string {
	var refused []string
	for _, f := range fields {
		if f.found {
			refused = append(refused, prefix+f.field+" "+f.way)
		}
	}
	return refused
}

func secure(server string) bool {
	u, err := url.Parse(server)
	return err == nil && strings.EqualFold(u.Scheme, "https") && u.Host != ""
}
