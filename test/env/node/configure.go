//go:build linux

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"waybill.dev/waybill/test/env"
)

// pauseName is the image of the first process of every Pod.
const pauseName = "waybill.test/pause:1"

// The configurations. A process of this machine may not be allowed to lower oom_score_adj, not even
// root's.
const (
	containerdConfig = `version = 2
root = "DIR/containerd/root"
state = "DIR/containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "DIR/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "PAUSE"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "DIR/cni"
`

	networkConfig = `{"cniVersion": "0.4.0", "name": "NODE", "plugins": [{
  "type": "bridge", "bridge": "NODE", "isGateway": true, "ipMasq": false, "hairpinMode": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "SUBNET", "gateway": "ADDRESS"}]], "dataDir": "DIR/cni-addresses"}
}]}
`

	kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: ADDRESS
port: 10250
readOnlyPort: 0
healthzPort: 0
tlsCertFile: DIR/kubelet.crt
tlsPrivateKeyFile: DIR/kubelet.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: DIR/ca.crt}}
authorization: {mode: Webhook}
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /NODE
enforceNodeAllocatable: [pods]
failSwapOn: false
makeIPTablesUtilChains: false
containerRuntimeEndpoint: unix://DIR/containerd.sock
resolvConf: DIR/resolv.conf
podLogsDir: DIR/logs
volumePluginDir: DIR/volume-plugins
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
syncFrequency: 5s
nodeStatusUpdateFrequency: 5s
`
)

func (n *Node) socket() string { return filepath.Join(n.dir, "containerd.sock") }

// configure writes the configurations and certificates of containerd and kubelet.
func (n *Node) configure() error {
	if _, err := n.kubeconfig("kubelet", "system:node:"+n.Name, "system:nodes", "system:masters"); err != nil {
		return err
	}
	certificate, key, err := n.cluster.ServerCertificate(n.net.address)
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(n.dir, "cni"), 0o755); err != nil {
		return fmt.Errorf("configure Node: %w", err)
	}
	replace := strings.NewReplacer("DIR", n.dir, "NODE", n.Name, "ADDRESS", n.net.address, "SUBNET", n.net.subnet, "PAUSE", pauseName)
	for name, content := range map[string]string{
		"containerd.toml":        replace.Replace(containerdConfig),
		"cni/10-bridge.conflist": replace.Replace(networkConfig),
		"kubelet.yaml":           replace.Replace(kubeletConfig),
		"kubelet.crt":            string(certificate),
		"kubelet.key":            string(key),
		"ca.crt":                 string(n.cluster.RESTConfig().CAData),
		"resolv.conf":            "",
	} {
		if err := os.WriteFile(filepath.Join(n.dir, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("configure Node: %w", err)
		}
	}
	return nil
}

// kubeconfig writes the kubeconfig of one of the Node's programs.
func (n *Node) kubeconfig(program, user string, groups ...string) (string, error) {
	config, err := n.cluster.AddUser(user, groups...)
	if err != nil {
		return "", err
	}
	content, err := env.Kubeconfig(program, config)
	if err != nil {
		return "", err
	}
	path := filepath.Join(n.dir, program+".kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w", program, err)
	}
	return path, nil
}
