package hook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"waybill.dev/waybill/sync/excerpt"
)

const (
	// maxOutput is how much of a command's output is kept, from its beginning: tags are read from it.
	maxOutput = 64 << 10

	// maxErrors is how much of what a command writes to standard error is kept, from its end.
	maxErrors = 1 << 10
)

// Target is the container that a command runs in.
type Target struct {
	Namespace, Pod string
	// Container of the Pod; empty for the first.
	Container string
}

// Result is how a command exited.
type Result struct {
	// ExitCode is 0 if the command succeeded.
	ExitCode int32
	// Output is what the command printed, up to 64 KiB.
	Output []byte
	// Cut is true if it printed more.
	Cut bool
	// Errors is the end of what the command wrote to standard error, up to 1 KiB.
	Errors string
}

// ErrTimeout is returned for a command that had not exited in time. It may still run: Kubernetes
// ends no command of a connection that is closed.
var ErrTimeout = errors.New("the command did not exit in time")

// ErrNotRunnable is returned for a command that the container runtime cannot start, because the container has no such
// executable, or may not execute it: it does not run at another try either.
var ErrNotRunnable = errors.New("the container cannot run the command")

// notRunnable are the messages of runc and crun that say so. What else they say, as that they are out of resources, may
// pass.
var notRunnable = regexp.MustCompile(`(?i)executable file .*not found|exec: "[^"]*": (stat [^:]*: no such file or directory|permission denied|is a directory)|exec format error`)

// Runner runs commands in containers of one cluster. It is safe for concurrent use.
type Runner struct {
	config *rest.Config
	pods   rest.Interface
}

// NewRunner returns a Runner that acts with the identity of config.
func NewRunner(config *rest.Config) (*Runner, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build client for exec: %w", err)
	}
	return &Runner{config: config, pods: clientset.CoreV1().RESTClient()}, nil
}

// Run runs a command and returns how it exited. An error means that it is not known whether or how
// the command ran: the API server or the node refused or broke the connection, or the time was up
// (ErrTimeout). Only with ErrNotRunnable is it known that it did not.
func (r *Runner) Run(ctx context.Context, t Target, command []string, timeout time.Duration) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, ErrTimeout)
	defer cancel()
	var connected atomic.Bool
	stream, err := r.open(t, command, &connected)
	if err != nil {
		return Result{}, err
	}
	output, failures := excerpt.NewHead(maxOutput), excerpt.NewTail(maxErrors)
	err = stream.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: output, Stderr: failures})
	if end, _ := ctx.Deadline(); err != nil && !time.Now().Before(end) {
		<-ctx.Done() // connections have the same deadline, and may notice it first
	}
	result := Result{Errors: oneLine(failures.String())}
	result.Output, result.Cut = output.Bytes()
	var exited exec.CodeExitError
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &exited):
		result.ExitCode = int32(exited.Code)
		return result, nil
	case ctx.Err() != nil && (connected.Load() || !errors.Is(context.Cause(ctx), ErrTimeout)):
		return result, context.Cause(ctx)
	case ctx.Err() != nil:
		err = fmt.Errorf("the API server did not answer within %s", timeout)
	case notRunnable.MatchString(err.Error()):
		err = fmt.Errorf("%w: %s", ErrNotRunnable, oneLine(err.Error()))
	}
	return result, fmt.Errorf("exec in container %s of Pod %s/%s: %w", t.Container, t.Namespace, t.Pod, err)
}

// open prepares a connection, which says that it is there; WebSockets are preferred, as older API servers know only SPDY.
func (r *Runner) open(t Target, command []string, connected *atomic.Bool) (remotecommand.Executor, error) {
	config := rest.CopyConfig(r.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &noting{next, connected} })
	url := r.pods.Get().Namespace(t.Namespace).Resource("pods").Name(t.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: t.Container, Command: command, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec).URL()
	spdy, err := remotecommand.NewSPDYExecutor(config, "POST", url)
	if err != nil {
		return nil, fmt.Errorf("prepare exec: %w", err)
	}
	socket, err := remotecommand.NewWebSocketExecutor(config, "GET", url.String())
	if err != nil {
		return nil, fmt.Errorf("prepare exec: %w", err)
	}
	return remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// noting notes that a request was answered: until then, the command has not been asked for.
type noting struct {
	http.RoundTripper
	answered *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (n *noting) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := n.RoundTripper.RoundTrip(req)
	if err == nil {
		n.answered.Store(true)
	}
	return answer, err
}
