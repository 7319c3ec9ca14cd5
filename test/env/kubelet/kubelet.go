package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Options configures a Kubelet. All are required.
type Options struct {
	// Client acts for the kubelet.
	Client kubernetes.Interface
	// TLS is the configuration of the server that the API server connects to.
	TLS *tls.Config
	// Dir is an existing directory for what Pods see.
	Dir string
	// Folder returns where the files of a volume are.
	Folder func(*corev1.PersistentVolume) (string, error)
}

// Kubelet executes commands for all Nodes of a cluster.
type Kubelet struct {
	options Options
	server  *http.Server
	stop    chan struct{} // closed by Stop
	once    sync.Once     // for that
	folders sync.Map      // a *sync.RWMutex by folder: read to start a command, write to pause it
	views   sync.Mutex    // held to change what Pods see

	mu      sync.Mutex
	running map[*command]bool
}

// Start makes the API server send what is executed in Pods to a new Kubelet, whichever Node they are on.
func Start(ctx context.Context, o Options) (*Kubelet, error) {
	k := &Kubelet{options: o, stop: make(chan struct{}), running: map[*command]bool{}}
	if err := k.watchPods(ctx); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.serveExec)
	k.server = &http.Server{Handler: mux, TLSConfig: o.TLS, ReadHeaderTimeout: time.Minute}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		k.Stop()
		return nil, fmt.Errorf("listen for the API server: %w", err)
	}
	go func() { _ = k.server.ServeTLS(listener, "", "") }() // ends with Stop
	if err := k.announce(ctx, listener.Addr().(*net.TCPAddr).Port); err != nil {
		k.Stop()
		return nil, err
	}
	return k, nil
}

// Stop kills all commands and ends the server. Stopping twice is allowed.
func (k *Kubelet) Stop() {
	k.once.Do(func() { close(k.stop) })
	if k.server != nil {
		_ = k.server.Close() // only fails to close what is closed
	}
	k.kill(func(*command) bool { return true })
}

// announce writes the server's address to every Node's status.
func (k *Kubelet) announce(ctx context.Context, port int) error {
	nodes, err := k.options.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	patch := fmt.Appendf(nil, `{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, port)
	for _, node := range nodes.Items {
		_, err := k.options.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("say where the kubelet of Node %s is: %w", node.Name, err)
		}
	}
	return nil
}

// watchPods ends commands with what they run in.
func (k *Kubelet) watchPods(ctx context.Context) error {
	pods := informers.NewSharedInformerFactory(k.options.Client, 0).Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, now any) { k.changed(before.(*corev1.Pod), now.(*corev1.Pod)) },
		DeleteFunc: func(last any) {
			if unknown, ok := last.(cache.DeletedFinalStateUnknown); ok {
				last = unknown.Obj
			}
			k.gone(last.(*corev1.Pod))
		},
	})
	if err != nil {
		return fmt.Errorf("watch Pods: %w", err)
	}
	go pods.Run(k.stop)
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		k.Stop()
		return fmt.Errorf("watch Pods: %w", context.Cause(ctx))
	}
	return nil
}

func (k *Kubelet) changed(before, now *corev1.Pod) {
	if before.UID != now.UID {
		k.gone(before)
		return
	}
	if now.Status.Phase == corev1.PodSucceeded || now.Status.Phase == corev1.PodFailed {
		k.kill(func(c *command) bool { return c.pod == now.UID })
		return
	}
	restarts := map[string]int32{}
	for _, container := range before.Status.ContainerStatuses {
		restarts[container.Name] = container.RestartCount
	}
	for _, container := range now.Status.ContainerStatuses {
		if container.RestartCount > restarts[container.Name] {
			k.kill(func(c *command) bool { return c.pod == now.UID && c.container == container.Name })
		}
	}
}

func (k *Kubelet) gone(pod *corev1.Pod) {
	k.kill(func(c *command) bool { return c.pod == pod.UID })
	k.views.Lock()
	defer k.views.Unlock()
	_ = os.RemoveAll(k.podDir(pod)) // what is left goes with the whole directory
}

func (k *Kubelet) podDir(pod *corev1.Pod) string {
	return filepath.Join(k.options.Dir, string(pod.UID))
}
