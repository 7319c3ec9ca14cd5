package env

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// AddUser returns the configuration of a user that authenticates with a client certificate. Its
// permissions are those that RBAC grants to its name and groups. It has no client-side rate limit.
func (c *Cluster) AddUser(name string, groups ...string) (*rest.Config, error) {
	pair, err := c.authority.client(name, groups...)
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return &rest.Config{
		Host: "https://" + c.port.addr(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.authority.pem,
			CertData: pair.cert,
			KeyData:  pair.key,
		},
		QPS: -1,
	}, nil
}

// Via returns a copy of config that connects to the cluster through the gate.
func Via(g *Gate, config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = "https://" + g.Address()
	return config
}

// Kubeconfig renders config as a kubeconfig with all data inline. Its cluster,
// user and context are called name.
func Kubeconfig(name string, config *rest.Config) ([]byte, error) {
	out, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server:                   config.Host,
			CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: config.CertData,
			ClientKeyData:         config.KeyData,
			Token:                 config.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig of %s: %w", name, err)
	}
	return out, nil
}

// componentKubeconfig writes the kubeconfig of a control plane program. It has all permissions,
// because it acts for all controllers, not for one with its own role.
func (c *Cluster) componentKubeconfig(component string) (string, error) {
	config, err := c.AddUser("system:"+component, "system:masters")
	if err != nil {
		return "", err
	}
	content, err := Kubeconfig(component, config)
	if err != nil {
		return "", err
	}
	path := c.file(component + ".kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w", component, err)
	}
	return path, nil
}
