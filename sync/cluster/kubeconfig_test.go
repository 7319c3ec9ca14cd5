package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/cluster"
)

// kubeconfig is one with the given lines in its cluster and user.
func kubeconfig(clusterLines, userLines string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: main
contexts:
- name: main
  context: {cluster: prod, user: admin}
clusters:
- name: prod
  cluster:
%s
users:
- name: admin
  user:
%s
`, indent(clusterLines), indent(userLines))
}

func indent(lines string) string {
	return "    " + strings.ReplaceAll(lines, "\n", "\n    ")
}

const (
	server = "server: https://prod.example.com:6443"
	token  = "token: s3cr3t-token"
)

// C38
func TestParseKubeconfig_refuses(t *testing.T) {
	cases := map[string]struct {
		reason  string
		content string
		want    string
	}{
		"Exec": {
			reason:  "who writes a Secret must not run programs beside the controllers",
			content: kubeconfig(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}"),
			want:    "kubeconfig: users[admin].user.exec would run a program beside Waybill: put a token or a client certificate inline",
		},
		"AuthProvider": {
			reason:  "they are gone from Kubernetes",
			content: kubeconfig(server, "auth-provider: {name: oidc}"),
			want:    "users[admin].user.auth-provider is not supported",
		},
		"TokenFile": {
			reason:  "the controllers' own token would be sent to any server",
			content: kubeconfig(server, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"),
			want:    "users[admin].user.tokenFile is a file: put its content into token",
		},
		"ClientCertificateFile": {
			reason:  "no file of the controllers may be read",
			content: kubeconfig(server, "client-certificate: /etc/cert.pem\nclient-key-data: a2V5"),
			want:    "users[admin].user.client-certificate is a file: put its content into client-certificate-data, in base64",
		},
		"ClientKeyFile": {
			reason:  "no file of the controllers may be read",
			content: kubeconfig(server, "client-key: ../key.pem"),
			want:    "users[admin].user.client-key is a file",
		},
		"CertificateAuthorityFile": {
			reason:  "no file of the controllers may be read",
			content: kubeconfig(server+"\ncertificate-authority: ca.pem", token),
			want:    "clusters[prod].cluster.certificate-authority is a file",
		},
		"ProxyURL": {
			reason:  "the credentials would go to the proxy",
			content: kubeconfig(server+"\nproxy-url: http://proxy.example.com", token),
			want:    "clusters[prod].cluster.proxy-url would send the credentials elsewhere",
		},
		"InsecureTLS": {
			reason:  "the credentials would go to whoever answers",
			content: kubeconfig(server+"\ninsecure-skip-tls-verify: true", token),
			want:    "clusters[prod].cluster.insecure-skip-tls-verify sends the credentials to any server that answers",
		},
		"PlainHTTP": {
			reason:  "no TLS is as insecure as unchecked TLS",
			content: kubeconfig("server: http://prod.example.com", token),
			want:    "clusters[prod].cluster.server must begin with https://",
		},
		"NoScheme": {
			reason:  "client-go would take it for http",
			content: kubeconfig("server: prod.example.com", token),
			want:    "clusters[prod].cluster.server must begin with https://",
		},
		"Impersonation": {
			reason:  "a view of another user would lose it in silence",
			content: kubeconfig(server, token+"\nas: root"),
			want:    "users[admin].user.as is not supported",
		},
		"Several": {
			reason:  "all that is wrong is said at once",
			content: kubeconfig(server+"\nproxy-url: http://proxy.example.com", "tokenFile: /token"),
			want:    "set a proxy for Waybill itself; users[admin].user.tokenFile is a file",
		},
		"NoCurrentContext": {
			reason:  "there is no guessing which cluster is meant",
			content: strings.Replace(kubeconfig(server, token), "current-context: main", "current-context: ''", 1),
			want:    `kubeconfig: current-context "" is not one of contexts: set it`,
		},
		"NoSuchCluster": {
			reason:  "the context must lead somewhere",
			content: strings.Replace(kubeconfig(server, token), "cluster: prod,", "cluster: test,", 1),
			want:    `kubeconfig: cluster "test" of context "main" is not one of clusters`,
		},
		"NoSuchUser": {
			reason:  "the context must lead somewhere",
			content: strings.Replace(kubeconfig(server, token), "user: admin}", "user: root}", 1),
			want:    `kubeconfig: user "root" of context "main" is not one of users`,
		},
		"BadCertificate": {
			reason:  "what can never connect is said at once",
			content: kubeconfig(server+"\ncertificate-authority-data: bm9wZQ==", token),
			want:    "kubeconfig: certificate data: ",
		},
		"NoYAML": {
			reason:  "a Secret may hold anything",
			content: "s3cr3t-token",
			want:    "parse kubeconfig: it is not what kubectl config view --raw --flatten prints",
		},
		"PasswordWithoutQuotes": {
			reason:  "YAML takes it for a reference, and quotes it",
			content: kubeconfig(server, "username: admin\npassword: *s3cr3t"),
			want:    "parse kubeconfig: it is not what kubectl config view --raw --flatten prints",
		},
		"TokenThatIsAMap": {
			reason:  "what is wrong is found, but not what it is",
			content: kubeconfig(server, "token: s3cr3t: token"),
			want:    "parse kubeconfig: invalid YAML near line 14",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.ParseKubeconfig([]byte(tc.content), cluster.KubeconfigOptions{})
			require.Error(t, err, tc.reason)
			assert.Contains(t, err.Error(), tc.want, tc.reason)
			assert.NotContains(t, err.Error(), "s3cr3t", "errors end up in conditions and logs")
			assert.NotContains(t, err.Error(), "\n", "conditions are one line")
		})
	}
}

// C38
func TestParseKubeconfig_accepts(t *testing.T) {
	cases := map[string]struct {
		reason  string
		content string
		options cluster.KubeconfigOptions
	}{
		"Inline": {
			reason:  "inline data is what is wanted",
			content: kubeconfig(server, token),
		},
		"ServerName": {
			reason:  "a name to check the certificate against makes nothing less safe",
			content: kubeconfig(server+"\ntls-server-name: kubernetes", token),
		},
		"OtherContext": {
			reason:  "what the current context does not use is never looked at",
			content: kubeconfig(server, token) + "- name: other\n  user: {tokenFile: /token}\n",
		},
		"Exec": {
			reason:  "where the operator allows it",
			content: kubeconfig(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: cat, interactiveMode: Never}"),
			options: cluster.KubeconfigOptions{AllowExec: true},
		},
		"Insecure": {
			reason:  "where the operator allows it",
			content: kubeconfig(server+"\ninsecure-skip-tls-verify: true", token),
			options: cluster.KubeconfigOptions{AllowInsecure: true},
		},
		"PlainHTTP": {
			reason:  "where the operator allows it",
			content: kubeconfig("server: http://127.0.0.1:8080", token),
			options: cluster.KubeconfigOptions{AllowInsecure: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config, err := cluster.ParseKubeconfig([]byte(tc.content), tc.options)
			require.NoError(t, err, tc.reason)
			assert.NotEmpty(t, config.Host)
		})
	}
}

// FuzzParseKubeconfig: whatever a Secret holds, there is an error or a configuration that
// reads no file.
func FuzzParseKubeconfig(f *testing.F) {
	f.Add([]byte(kubeconfig(server, token)))
	f.Add([]byte(kubeconfig(server, "tokenFile: /token")))
	f.Fuzz(func(t *testing.T, content []byte) {
		config, err := cluster.ParseKubeconfig(content, cluster.KubeconfigOptions{})
		if err != nil {
			return
		}
		assert.Empty(t, config.BearerTokenFile+config.CAFile+config.CertFile+config.KeyFile)
		assert.Nil(t, config.ExecProvider)
		assert.False(t, config.Insecure)
		assert.True(t, strings.HasPrefix(strings.ToLower(config.Host), "https://"), config.Host)
	})
}
