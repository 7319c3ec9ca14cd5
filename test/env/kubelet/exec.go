package kubelet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// idleTimeout is that of real kubelets.
const idleTimeout = 4 * time.Hour

// serveExec answers as a kubelet does: errors before the command starts have a status of their own, and
// all others come at the end of the streams.
func (k *Kubelet) serveExec(w http.ResponseWriter, r *http.Request) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, err := k.options.Client.CoreV1().Pods(namespace).Get(r.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		http.Error(w, fmt.Sprintf("pod %q does not exist in namespace %q", name, namespace), http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if !runs(pod, container) {
		http.Error(w, fmt.Sprintf("container not found (%q)", container), http.StatusInternalServerError)
		return
	}
	streams, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	view, err := k.view(r.Context(), pod, container)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	remotecommand.ServeExec(w, r, executor{k, pod, view}, name, string(pod.UID), container, r.Form["command"], streams,
		idleTimeout, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

func runs(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == container && s.State.Running != nil
	})
}

// executor runs one command in a container.
type executor struct {
	kubelet *Kubelet
	pod     *corev1.Pod
	view    view
}

// ExecInContainer runs the command until it ends. There are no terminals.
func (e executor) ExecInContainer(_ context.Context, _, _, container string, args []string, in io.Reader, out, err io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	c := &command{pod: e.pod.UID, container: container, folders: e.view.folders}
	return e.kubelet.run(c, e.view.command(args), streams{in, out, err})
}
