package volumes

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

// Result is how a command in a Pod ended.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Exec runs a shell script in the only container of a Pod, through the API server. A claim that is mounted
// at /data is the folder data: see package kubelet. It fails if the script could not be run; how that
// ended is in the result.
func (v *Volumes) Exec(ctx context.Context, namespace, pod, script string) (Result, error) {
	request := v.client.CoreV1().RESTClient().Post().
		Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"sh", "-c", script}, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(v.cluster.RESTConfig(), "GET", request.URL().String())
	if err != nil {
		return Result{}, fmt.Errorf("execute in Pod %s/%s: %w", namespace, pod, err)
	}
	var out, failed bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &failed})
	result := Result{Stdout: out.String(), Stderr: failed.String()}
	if code := (utilexec.CodeExitError{}); errors.As(err, &code) {
		result.Code = code.Code
		return result, nil
	}
	if err != nil {
		return result, fmt.Errorf("execute in Pod %s/%s: %w", namespace, pod, err)
	}
	return result, nil
}
