package env

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// serviceCIDR holds 65,536 Services: benchmarks create thousands.
const serviceCIDR = "10.96.0.0/16"

// auditLogFile is the name of the audit log in the cluster's directory.
const auditLogFile = "audit.log"

// file returns the path of one of the cluster's own files.
func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

// writeServerFiles writes the certificates, the key of service account tokens and
// the audit policy that the API server is started with.
func (c *Cluster) writeServerFiles() error {
	serving, err := c.authority.server("127.0.0.1", "localhost", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate key of service account tokens: %w", err)
	}
	tokenKey, err := encodeKey(tokens)
	if err != nil {
		return fmt.Errorf("encode key of service account tokens: %w", err)
	}
	kubelet, err := c.authority.client(KubeletClient)
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"kubelet-client.crt": kubelet.cert,
		"kubelet-client.key": kubelet.key,
		"ca.crt":             c.authority.pem,
		"serving.crt":        serving.cert,
		"serving.key":        serving.key,
		"tokens.key":         tokenKey,
		"audit.yaml":         []byte(auditPolicy),
	}
	for name, content := range files {
		if err := os.WriteFile(c.file(name), content, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// startEtcd starts etcd on a Unix socket, so that it needs no port. Its data need not survive a
// crash of the machine, so it does not sync to disk.
func (c *Cluster) startEtcd(ctx context.Context) error {
	p, err := c.run("etcd",
		"--data-dir="+c.file("etcd"),
		"--unsafe-no-fsync",
		"--log-level=warn",
		"--quota-backend-bytes=2147483648",
		fmt.Sprintf("--max-txn-ops=%d", restoreAtOnce),
		"--auto-compaction-mode=revision",
		"--auto-compaction-retention=5000",
		"--listen-client-urls=unix://"+c.file("etcd.sock"),
		"--advertise-client-urls=http://127.0.0.1:0",
		"--listen-peer-urls=http://127.0.0.1:0",
	)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.store = p
	c.mu.Unlock()
	client := c.etcdClient()
	return p.until(ctx, "etcd", func(ctx context.Context) error {
		return getOK(ctx, client, "http://etcd/health")
	})
}

// etcdClient returns a client of the cluster's etcd, whatever host it asks.
func (c *Cluster) etcdClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.file("etcd.sock"))
		},
		DisableKeepAlives: true,
	}}
}

// StartAPIServer starts the API server again after KillAPIServer, on the same address and data, and
// returns when it is ready. It does nothing if the API server is running.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if c.loan != nil {
		return c.loan.call(startAPIServer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer != nil {
		return nil
	}
	p, err := c.exec("kube-apiserver", append(c.apiServerFlags(), c.options.APIServerFlags...)...)
	if err != nil {
		return err
	}
	c.apiServer = p
	client, err := rest.HTTPClientFor(c.admin)
	if err != nil {
		return fmt.Errorf("build client of API server: %w", err)
	}
	defer client.CloseIdleConnections()
	return p.until(ctx, "kube-apiserver", func(ctx context.Context) error {
		return getOK(ctx, client, c.admin.Host+"/readyz")
	})
}

// KillAPIServer kills the API server as a crash would. Connections to it are refused until
// StartAPIServer; data and address stay.
func (c *Cluster) KillAPIServer() error {
	if c.loan != nil {
		return errors.Join(c.loan.call(killAPIServer), c.noteCrash())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer == nil {
		return errors.New("kill API server: it does not run")
	}
	p := c.apiServer
	c.apiServer = nil
	if err := p.Kill(); err != nil {
		return err
	}
	return c.noteCrash()
}

func (c *Cluster) apiServerFlags() []string {
	flags := []string{
		"--etcd-servers=unix://" + c.file("etcd.sock"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port.number),
		"--permit-port-sharing", // with our reservation
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--authorization-mode=RBAC",
		"--allow-privileged",
		"--client-ca-file=" + c.file("ca.crt"),
		"--kubelet-certificate-authority=" + c.file("ca.crt"),
		"--kubelet-client-certificate=" + c.file("kubelet-client.crt"),
		"--kubelet-client-key=" + c.file("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--tls-cert-file=" + c.file("serving.crt"),
		"--tls-private-key-file=" + c.file("serving.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.file("tokens.key"),
		"--service-account-signing-key-file=" + c.file("tokens.key"),
	}
	if c.options.Audit {
		flags = append(flags,
			"--audit-policy-file="+c.file("audit.yaml"),
			"--audit-log-path="+c.file(auditLogFile),
			"--audit-log-maxsize=0", // never rotated: readers remember offsets
		)
	}
	return flags
}

// getOK requests url and fails unless the status is 200.
func getOK(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body) // lets the connection be used again
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}
