package logs

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"waybill.dev/waybill/cmd/internal/fleet"
)

// Pod is one whose logs can be read.
type Pod struct {
	*corev1.Pod

	pods corev1client.PodInterface
}

// PodOf reads a Pod of a cluster.
func PodOf(ctx context.Context, cluster *fleet.Cluster, key types.NamespacedName) (*Pod, error) {
	c, err := cluster.Client()
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := c.Get(ctx, key, pod); err != nil {
		return nil, fmt.Errorf("get Pod %s in cluster %s: %w", key, cluster.Name(), cluster.Explain(err))
	}
	core, err := clientOf(cluster)
	if err != nil {
		return nil, err
	}
	return &Pod{Pod: pod, pods: core.Pods(key.Namespace)}, nil
}

// Containers returns the names of its containers, in the order in which they start.
func (p *Pod) Containers() []string { return containersOf(p.Pod) }

// defaultContainer is the annotation by which kubectl chooses a container as well.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// Default returns the container to read where none is chosen: as kubectl does, the one that the Pod is annotated with,
// or its first.
func (p *Pod) Default() string {
	if named := p.Annotations[defaultContainer]; slices.Contains(p.Containers(), named) {
		return named
	}
	if len(p.Spec.Containers) == 0 {
		return ""
	}
	return p.Spec.Containers[0].Name
}

// Read opens the log of a container. The caller closes it.
func (p *Pod) Read(ctx context.Context, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	log, err := p.pods.GetLogs(p.Name, options).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the log of container %s of Pod %s/%s: %w", options.Container, p.Namespace, p.Name, err)
	}
	return log, nil
}
