package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/cmd/internal/tree"
)

// maxReads is how many Pods are read at a time.
const maxReads = 16

// stream is the log of one container.
type stream struct {
	cluster   string
	pod       *corev1.Pod
	container string
	pods      corev1client.PodInterface
}

// String names the container.
func (s stream) String() string {
	return fmt.Sprintf("container %s of Pod %s/%s in cluster %s", s.container, s.pod.Namespace, s.pod.Name, s.cluster)
}

// streams returns the logs of the containers of all Pods among the members, in their order. Pods that
// are gone have none.
func streams(ctx context.Context, members []tree.Member, container string) ([]stream, error) {
	found := make([][]stream, len(members))
	clients := map[*fleet.Cluster]corev1client.CoreV1Interface{}
	var group errgroup.Group
	group.SetLimit(maxReads)
	for i, m := range members {
		if !isPod(m) {
			continue
		}
		if clients[m.Cluster] == nil {
			c, err := clientOf(m.Cluster)
			if err != nil {
				return nil, err
			}
			clients[m.Cluster] = c
		}
		pods := clients[m.Cluster].Pods(m.Namespace)
		group.Go(func() (err error) {
			found[i], err = streamsOf(ctx, m, pods, container)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []stream
	for _, some := range found {
		all = append(all, some...)
	}
	return all, nil
}

// isPod reports whether a member is a Pod.
func isPod(m tree.Member) bool { return m.Group == "" && m.Kind == "Pod" }

func clientOf(cluster *fleet.Cluster) (corev1client.CoreV1Interface, error) {
	config, httpClient, err := cluster.Streaming()
	if err != nil {
		return nil, err
	}
	c, err := corev1client.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return c, nil
}

// streamsOf returns the logs of the containers of a Pod: of all, or of the one that is named.
func streamsOf(ctx context.Context, m tree.Member, pods corev1client.PodInterface, container string) ([]stream, error) {
	pod := &corev1.Pod{}
	c, err := m.Cluster.Client()
	if err != nil {
		return nil, err
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Name}, pod); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("get Pod %s/%s in cluster %s: %w", m.Namespace, m.Name, m.Cluster.Name(), m.Cluster.Explain(err))
	}
	var all []stream
	for _, name := range containersOf(pod) {
		if container == "" || container == name {
			all = append(all, stream{cluster: m.Cluster.Name(), pod: pod, container: name, pods: pods})
		}
	}
	return all, nil
}

// containersOf returns the names of the containers of a Pod, in the order in which they start.
func containersOf(pod *corev1.Pod) []string {
	var names []string
	for _, c := range pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}

// maxLine is how many bytes of a line are printed as one. What a container writes without line breaks
// is not collected in memory; lines that are longer are broken.
const maxLine = 64 << 10

// copyTo prints the log line by line, each behind the prefix, and without anything that could steer the
// terminal.
func (s stream) copyTo(ctx context.Context, w *lines, options *corev1.PodLogOptions, prefix string) error {
	options = options.DeepCopy()
	options.Container = s.container
	log, err := s.pods.GetLogs(s.pod.Name, options).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // nothing was written
	reader := bufio.NewReaderSize(log, maxLine)
	for {
		line, err := reader.ReadSlice('\n')
		if len(line) > 0 {
			if err := w.print(prefix, line); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// lines prints lines of several logs, each as a whole.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) print(prefix string, line []byte) error {
	if n := len(line); line[n-1] == '\n' {
		line = line[:n-1]
	}
	text := prefix + output.Escape(string(line)) + "\n"
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.w, text)
	return err
}
