package env

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// nodeName is the name of the fake Node of clusters with Pods.
const nodeName = "node-0"

// hostPathRoot is where kube-controller-manager creates the directories of volumes; the path is
// hard-coded there.
const hostPathRoot = "/tmp/hostpath_pv/"

// startControllers starts the controllers of the control plane, and waits until they act on
// objects.
func (c *Cluster) startControllers(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	manager, err := c.startControllerManager()
	if err != nil {
		return err
	}
	c.manager = manager
	if err := createStorageClass(ctx, client); err != nil {
		return err
	}
	if c.options.Pods {
		if err := c.startPods(ctx, client); err != nil {
			return err
		}
	}
	return manager.until(ctx, "kube-controller-manager", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// startControllerManager runs the controllers that tests rely on: namespaces, garbage collection,
// workloads, volumes, tokens. Those for real Nodes, clouds and certificate requests are disabled.
// The default limit of 20 requests a second would set the pace of every benchmark; and with the
// default grace period, the fake Node, whose heartbeats are barely frequent enough, would be marked
// as lost now and then.
func (c *Cluster) startControllerManager() (*Process, error) {
	kubeconfig, err := c.componentKubeconfig("kube-controller-manager")
	if err != nil {
		return nil, err
	}
	return c.run("kube-controller-manager",
		"--kubeconfig="+kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--node-monitor-grace-period=24h",
		"--service-account-private-key-file="+c.file("tokens.key"),
		"--root-ca-file="+c.file("ca.crt"),
		"--enable-hostpath-provisioner",
		"--controllers="+strings.Join([]string{
			"*",
			"-bootstrap-signer-controller",
			"-certificatesigningrequest-approving-controller",
			"-certificatesigningrequest-cleaner-controller",
			"-certificatesigningrequest-signing-controller",
			"-cloud-node-lifecycle-controller",
			"-device-taint-eviction-controller",
			"-node-ipam-controller",
			"-node-route-controller",
			"-persistentvolume-attach-detach-controller",
			"-resourceclaim-controller",
			"-service-lb-controller",
			"-token-cleaner-controller",
		}, ","),
	)
}

// startPods starts kube-scheduler and kwok, and waits for the Node.
func (c *Cluster) startPods(ctx context.Context, client kubernetes.Interface) error {
	kubeconfig, err := c.componentKubeconfig("kube-scheduler")
	if err != nil {
		return err
	}
	if _, err := c.run("kube-scheduler", "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=500", "--kube-api-burst=1000"); err != nil {
		return err
	}
	if err := createNode(ctx, client); err != nil {
		return err
	}
	kwok, err := c.startKwok()
	if err != nil {
		return err
	}
	return kwok.until(ctx, "Node", func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return schedulable(node)
	})
}

func (c *Cluster) startKwok() (*Process, error) {
	kubeconfig, err := c.componentKubeconfig("kwok")
	if err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--manage-all-nodes",
		"--cidr=10.64.0.0/16",
		"--node-port=0",
		"--config=" + filepath.Join(c.bin, stagesFile),
	}
	if c.options.Stages != "" {
		if err := os.WriteFile(c.file("stages.yaml"), []byte(c.options.Stages), 0o600); err != nil {
			return nil, fmt.Errorf("write stages: %w", err)
		}
		args = append(args, "--config="+c.file("stages.yaml"))
	}
	return c.run("kwok", args...)
}

func createNode(ctx context.Context, client kubernetes.Interface) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   nodeName,
		Labels: map[string]string{"kubernetes.io/hostname": nodeName, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
	}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Node: %w", err)
	}
	// kwok keeps existing values; on its own it sets no ephemeral storage, which charts request.
	size := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1k"),
		corev1.ResourceMemory:           resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("10k"),
	}
	// A patch, as kwok may have written the status already.
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": size, "allocatable": size}})
	if err != nil {
		return fmt.Errorf("size Node: %w", err)
	}
	if _, err := client.CoreV1().Nodes().Patch(ctx, nodeName, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("size Node: %w", err)
	}
	return nil
}

// schedulable returns why Pods cannot be scheduled to the node; nil if they can.
func schedulable(node *corev1.Node) error {
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("node has taints %v", node.Spec.Taints)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node is not Ready: %v", node.Status.Conditions)
}

func createStorageClass(ctx context.Context, client kubernetes.Interface) error {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "standard",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       "kubernetes.io/host-path",
		ReclaimPolicy:     ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}
	_, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create StorageClass: %w", err)
	}
	return nil
}

// removeVolumes kills kube-controller-manager, so that it creates no more volumes, and removes the
// directories of those that exist: they are outside of the cluster's own directory.
func (c *Cluster) removeVolumes() {
	if c.manager == nil {
		return
	}
	_ = c.manager.Kill() // fails only if it has ended
	ctx, cancel := cleanupContext()
	defer cancel()
	for _, dir := range c.volumeDirectories(ctx) {
		_ = os.RemoveAll(dir)
	}
}
