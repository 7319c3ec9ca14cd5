package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/kubelet"
)

// crdFolder is in the directory that env.VolumeBinaries returns.
const crdFolder = "crds"

// Volumes is what runs beside a cluster.
type Volumes struct {
	// Driver makes calls fail, and knows the folders of volumes.
	Driver *csidriver.Driver

	cluster     *env.Cluster
	client      kubernetes.Interface
	dir         string
	node        Node             // nil if Pods are fake
	kubelet     *kubelet.Kubelet // nil if they are real
	controllers []*env.Process
}

// started holds what runs beside the clusters of this process.
var started struct {
	sync.Mutex

	byCluster map[*env.Cluster]*Volumes
}

// CRDs returns the directory with the CustomResourceDefinitions of snapshots. Start installs them where they
// are missing; but the garbage collector looks for new kinds only every half minute, so a cluster whose
// snapshots have owners has them in its Options.
func CRDs(t testing.TB) string {
	t.Helper()
	bin, err := env.VolumeBinaries(t.Context())
	require.NoError(t, err)
	return filepath.Join(bin, crdFolder)
}

// On returns what runs beside the cluster, which must have Pods, and starts it at the first call. It ends
// with the cluster. If the test fails, the logs of the controllers are in its output.
func On(t testing.TB, c *env.Cluster) *Volumes {
	t.Helper()
	started.Lock()
	defer started.Unlock()
	v := started.byCluster[c]
	if v == nil {
		var err error
		v, err = Start(t.Context(), c)
		require.NoError(t, err)
		if started.byCluster == nil {
			started.byCluster = map[*env.Cluster]*Volumes{}
		}
		started.byCluster[c] = v
	}
	t.Cleanup(func() { v.report(t) })
	return v
}

// Node is a real Node, such as package node starts.
type Node interface {
	csidriver.Writers
	csidriver.Mounter
	// Plugins returns the directory where the kubelet looks for drivers.
	Plugins() string
}

// Start starts everything and returns when claims can be created. It ends with the cluster.
func Start(ctx context.Context, c *env.Cluster) (*Volumes, error) { return start(ctx, c, nil) }

// StartOn is Start for a cluster with one real Node.
func StartOn(ctx context.Context, c *env.Cluster, n Node) (*Volumes, error) { return start(ctx, c, n) }

func start(ctx context.Context, c *env.Cluster, n Node) (*Volumes, error) {
	bin, err := env.VolumeBinaries(ctx)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	dir, err := c.Dir("volumes")
	if err != nil {
		return nil, err
	}
	v := &Volumes{cluster: c, client: client, dir: dir, node: n}
	c.OnStop(v.stop)
	ctx, cancel := context.WithTimeout(ctx, env.Limit)
	defer cancel()
	if err := v.start(ctx, bin); err != nil {
		v.stop()
		return nil, fmt.Errorf("start volumes of cluster %s: %w", c.Name(), err)
	}
	return v, nil
}

func (v *Volumes) start(ctx context.Context, bin string) error {
	if err := v.cluster.InstallCRDs(ctx, filepath.Join(bin, crdFolder)); err != nil {
		return err
	}
	nodes, err := v.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return errors.New("the cluster has no Node: start it with Pods")
	}
	node := nodes.Items[0].Name
	if err := v.startDriver(ctx, node); err != nil {
		return err
	}
	if err := v.createObjects(ctx, node); err != nil {
		return err
	}
	return v.startControllers(bin)
}

func (v *Volumes) startDriver(ctx context.Context, node string) (err error) {
	options := csidriver.Options{Dir: v.dir, Node: node}
	if v.node != nil {
		options.Writers, options.Mounter = v.node, v.node
	} else {
		if err := v.startKubelet(ctx); err != nil {
			return err
		}
		options.Writers = v.kubelet
	}
	if v.Driver, err = csidriver.New(options); err != nil {
		return err
	}
	if err := v.Driver.Serve(v.socket()); err != nil || v.node == nil {
		return err
	}
	return v.Driver.Register(v.node.Plugins(), v.socket())
}

func (v *Volumes) startKubelet(ctx context.Context) error {
	serving, err := v.cluster.KubeletTLS()
	if err != nil {
		return err
	}
	pods := filepath.Join(v.dir, "pods")
	if err := os.Mkdir(pods, 0o755); err != nil {
		return fmt.Errorf("create directory for Pods: %w", err)
	}
	v.kubelet, err = kubelet.Start(ctx, kubelet.Options{Client: v.client, TLS: serving, Dir: pods, Folder: v.folder})
	return err
}

// folder returns where the files of a volume of the driver, or of the cluster's own class, are.
func (v *Volumes) folder(pv *corev1.PersistentVolume) (string, error) {
	switch {
	case pv.Spec.HostPath != nil:
		return pv.Spec.HostPath.Path, nil
	case pv.Spec.CSI != nil && pv.Spec.CSI.Driver == csidriver.Name:
		return v.Driver.Folder(pv.Spec.CSI.VolumeHandle)
	}
	return "", fmt.Errorf("no node has the files of volume %s", pv.Name)
}

func (v *Volumes) socket() string { return filepath.Join(v.dir, "csi.sock") }

// stop ends everything, in the order in which they call each other. Stopping twice is allowed.
func (v *Volumes) stop() {
	for _, p := range v.controllers {
		_ = p.Kill() // fails only if it has ended
	}
	if v.Driver != nil {
		v.Driver.Stop()
	}
	if v.kubelet != nil {
		v.kubelet.Stop()
	}
}
