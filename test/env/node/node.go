//go:build linux

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"waybill.dev/waybill/test/env"
)

// programs are what a Node needs besides the kubelet, and the packages that have them.
var programs = map[string]string{
	"/usr/bin/containerd": "containerd",
	"/usr/bin/ctr":        "containerd",
	"/usr/sbin/runc":      "runc",
	"/usr/lib/cni/bridge": "containernetworking-plugins",
	"/usr/sbin/ip":        "iproute2",
	"/usr/bin/nsenter":    "util-linux",
	"/usr/bin/unshare":    "util-linux",
}

// Require skips a test unless E2E is set, as `make e2e` does: then it fails a test that cannot have a
// Node on this machine, and says why.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv("E2E") == "" {
		t.Skip("needs a real Node: run `make e2e` as root")
	}
	if os.Getuid() != 0 {
		t.Fatal("a real Node needs root")
	}
	if _, err := os.Stat("/sys/fs/cgroup/freezer"); err != nil {
		t.Fatal("a real Node needs cgroup v1 at /sys/fs/cgroup")
	}
	for file, pkg := range programs {
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("a real Node needs %s: install package %s", file, pkg)
		}
	}
	for _, able := range abilities {
		if out, err := exec.CommandContext(t.Context(), able.command[0], able.command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("a real Node needs %s, which this machine does not allow: %s: %v: %s", able.what, strings.Join(able.command, " "), err, bytes.TrimSpace(out))
		}
	}
}

// abilities are what not even root may have, as in most containers, and how to find out. Each command changes nothing
// that outlives it.
var abilities = []struct {
	what    string
	command []string
}{
	{"mount and PID namespaces, and mounts in them (CAP_SYS_ADMIN)", []string{
		"/usr/bin/unshare", "--mount", "--pid", "--fork", "--mount-proc", "/bin/sh", "-ec", "mount --make-rshared / && mount -t tmpfs tmpfs /mnt",
	}},
	{"bridges (CAP_NET_ADMIN)", []string{"/usr/bin/unshare", "--net", "/usr/sbin/ip", "link", "add", "waybill-able", "type", "bridge"}},
	{"control groups that it can write to", []string{"/bin/sh", "-ec", "mkdir /sys/fs/cgroup/freezer/waybill-able-$$ && rmdir /sys/fs/cgroup/freezer/waybill-able-$$"}},
}

// Options configures a Node.
type Options struct {
	// Images are files with the images that Pods may use; see Image.
	Images []string
}

// Node is a Node whose Pods are processes of this machine.
type Node struct {
	// Name of the Node object.
	Name string

	cluster *env.Cluster
	client  kubernetes.Interface
	dir     string
	net     *network
	groups  cgroups
	kernel  settings
	process *env.Process
	init    int // the first process of the namespaces, as this process sees it
}

// Start starts a Node and kube-scheduler, and returns when the Node is Ready. The cluster must not have
// fake Pods. The Node ends with the cluster.
func Start(ctx context.Context, c *env.Cluster, o Options) (*Node, error) {
	bin, err := env.NodeBinaries(ctx)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	dir, err := c.Dir("node")
	if err != nil {
		return nil, err
	}
	n := &Node{cluster: c, client: client, dir: dir}
	c.OnStop(n.stop)
	ctx, cancel := context.WithTimeout(ctx, env.Limit)
	defer cancel()
	if err := n.start(ctx, bin, o); err != nil {
		n.stop()
		return nil, fmt.Errorf("start Node of cluster %s: %w", c.Name(), err)
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, bin string, o Options) (err error) {
	if n.net, err = reserveNetwork(ctx); err != nil {
		return err
	}
	n.Name = n.net.name
	n.kernel = rememberSettings()
	n.groups = cgroups(n.net.name)
	if err := n.groups.create(); err != nil {
		return err
	}
	pause, err := pauseImage(ctx, n.dir)
	if err != nil {
		return err
	}
	if err := n.configure(); err != nil {
		return err
	}
	if err := n.startProcesses(bin); err != nil {
		return err
	}
	if err := n.until(ctx, "containerd", func(ctx context.Context) error { return n.Run(ctx, "ctr", "-a", n.socket(), "version") }); err != nil {
		return err
	}
	for _, image := range append([]string{pause}, o.Images...) {
		if err := n.Run(ctx, "ctr", "-a", n.socket(), "-n", "k8s.io", "images", "import", image); err != nil {
			return err
		}
	}
	if err := n.startScheduler(); err != nil {
		return err
	}
	if err := n.trustAPIServer(ctx); err != nil {
		return err
	}
	return n.until(ctx, "Node", n.ready)
}

// startProcesses starts the first process of the namespaces, which starts the others.
func (n *Node) startProcesses(bin string) (err error) {
	n.process, err = env.StartProcess(env.Command{
		Name: "node",
		Path: "/usr/bin/unshare",
		Args: []string{"--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "/bin/sh", "-euc", script, "node",
			filepath.Join(bin, "kubelet"), n.dir, n.Name, n.net.address},
	})
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		pid := n.process.PID()
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			return false, fmt.Errorf("find first process of Node: %w", err)
		}
		n.init, err = strconv.Atoi(strings.TrimSpace(string(children)))
		return err == nil, nil
	})
}

// script runs as the first process of the namespaces, with the path of the kubelet, the Node's directory,
// name and address. Paths that containerd and the kubelet have hard-coded are empty for them, and gone
// with the namespace.
const script = `
mount --make-rshared /
for folder in /run/containerd /run/runc /run/netns /var/lib/cni /var/lib/kubelet /var/log/containers /opt/containerd /usr/libexec/kubernetes; do
	mkdir -p $folder
	mount -t tmpfs tmpfs $folder
done
/usr/bin/containerd --config "$2/containerd.toml" &
containerd=$!
until [ -S "$2/containerd.sock" ]; do
	kill -0 $containerd
	sleep 0.1
done
"$1" --config "$2/kubelet.yaml" --kubeconfig "$2/kubelet.kubeconfig" --root-dir "$2/kubelet" --cert-dir "$2/kubelet-pki" \
	--hostname-override "$3" --node-ip "$4" --v=1 &
kubelet=$!
while kill -0 $containerd && kill -0 $kubelet; do
	sleep 1 &
	wait $!
done
exit 1
`

func (n *Node) startScheduler() error {
	kubeconfig, err := n.kubeconfig("kube-scheduler", "system:kube-scheduler", "system:masters")
	if err != nil {
		return err
	}
	bin, err := env.Binaries(context.Background())
	if err != nil {
		return err
	}
	_, err = env.StartProcess(env.Command{
		Name: "kube-scheduler", Path: filepath.Join(bin, "kube-scheduler"),
		Args: []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0"},
	})
	return err
}

// trustAPIServer lets the API server ask the kubelet for anything.
func (n *Node) trustAPIServer(ctx context.Context) error {
	_, err := n.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubelet-api"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kubelet-api-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: env.KubeletClient}},
	}, metav1.CreateOptions{})
	return err
}

func (n *Node) ready(ctx context.Context) error {
	node, err := n.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return errors.New(condition.Message)
		}
	}
	return errors.New("the Node has no condition Ready")
}

// until waits until ready returns nil, for as long as the Node's processes run.
func (n *Node) until(ctx context.Context, what string, ready func(context.Context) error) error {
	last := errors.New("not asked")
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-n.process.Done():
			return false, errors.New("the processes of the Node have ended")
		default:
		}
		last = ready(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w (last: %w)\n%s", what, err, last, n.Log())
	}
	return nil
}

// Run runs a command where the Node's processes see files and mounts.
func (n *Node) Run(ctx context.Context, command ...string) error {
	args := append([]string{"--target", strconv.Itoa(n.init), "--mount", "--"}, command...)
	out, err := exec.CommandContext(ctx, "nsenter", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s on the Node: %w: %s", command[0], err, out)
	}
	return nil
}

// Plugins returns the directory where the kubelet looks for drivers.
func (n *Node) Plugins() string { return filepath.Join(n.dir, "kubelet", "plugins_registry") }

// Log returns what the Node's processes have written so far.
func (n *Node) Log() string {
	if n.process == nil {
		return ""
	}
	log, err := n.process.Log()
	if err != nil {
		return err.Error()
	}
	return log
}

// stop ends everything. Stopping twice is allowed.
func (n *Node) stop() {
	if n.process != nil {
		_ = n.process.Kill() // fails only if it has ended
	}
	n.groups.remove()
	if n.net != nil {
		n.net.release()
	}
	n.kernel.restore()
}
