package hook_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/data/hook"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/volumes"
)

func TestMain(m *testing.M) { env.Main(m) }

// limit is longer than any command here takes on a busy machine.
const limit = 2 * time.Minute

// world is a Pod that commands run in, with a runner for its cluster.
type world struct {
	*hook.Runner
	target hook.Target
	client kubernetes.Interface
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "pods", Pods: true})
	volumes.On(t, c)
	runner, err := hook.NewRunner(c.RESTConfig())
	require.NoError(t, err)
	clientset, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	namespace := c.Namespace(t)
	pods := clientset.CoreV1().Pods(namespace)
	_, err = pods.Create(t.Context(), volumes.Pod(namespace, "db"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		pod, err := pods.Get(t.Context(), "db", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	}, limit, 50*time.Millisecond)
	return &world{runner, hook.Target{Namespace: namespace, Pod: "db"}, clientset}
}

// S64, C20: as kubectl exec does.
func TestRunner_saysHowACommandExited(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		script string
		want   hook.Result
	}{
		"success":        {"echo fine", hook.Result{Output: []byte("fine\n")}},
		"failure":        {"echo locked already >&2; exit 3", hook.Result{ExitCode: 3, Errors: "locked already"}},
		"output's start": {"printf a; head -c 70000 /dev/zero | tr '\\0' x", hook.Result{Output: []byte("a" + strings.Repeat("x", 64<<10-1)), Cut: true}},
		"errors' end":    {"head -c 70000 /dev/zero | tr '\\0' x >&2; printf end >&2; exit 1", hook.Result{ExitCode: 1, Errors: strings.Repeat("x", 1021) + "end"}},
		"10 MB of either": {
			"head -c 10000000 /dev/zero | tr '\\0' x | tee /dev/stderr; printf end >&2; exit 1",
			hook.Result{ExitCode: 1, Output: []byte(strings.Repeat("x", 64<<10)), Cut: true, Errors: strings.Repeat("x", 1021) + "end"},
		},
		"no terminal is told anything": {"printf '\\033[2J a\\nb \\377' >&2; exit 1", hook.Result{ExitCode: 1, Errors: "[2J a b"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := w.Run(t.Context(), w.target, []string{"sh", "-c", test.script}, limit)
			require.NoError(t, err)
			if result.Output == nil {
				result.Output = test.want.Output
			}
			assert.Equal(t, test.want, result)
		})
	}
}

// A command that hangs, as it waits for input that never comes, costs its timeout and no more.
func TestRunner_givesUpACommandThatHangs(t *testing.T) {
	w := newWorld(t)
	_, err := w.Run(t.Context(), w.target, []string{"sh", "-c", "sleep 600"}, time.Second)
	assert.ErrorIs(t, err, hook.ErrTimeout)
}

func TestRunner_endsWithItsContext(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Run(ctx, w.target, []string{"true"}, limit)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestRunner_namesThePodThatItCannotReach(t *testing.T) {
	w := newWorld(t)
	w.target.Pod, w.target.Container = "gone", "main"
	_, err := w.Run(t.Context(), w.target, []string{"true"}, limit)
	assert.ErrorContains(t, err, "exec in container main of Pod "+w.target.Namespace+"/gone: ")
	assert.ErrorContains(t, err, "not found")
}

// Of a command that was not asked for, because the API server did not answer in time, it is not said that it may run.
func TestRunner_tellsACommandThatHangsFromAnAPIServerThatDoes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections, and answers nothing
	require.NoError(t, err)
	defer listener.Close()
	runner, err := hook.NewRunner(&rest.Config{Host: "http://" + listener.Addr().String()})
	require.NoError(t, err)
	_, err = runner.Run(t.Context(), hook.Target{Namespace: "ns", Pod: "db"}, []string{"true"}, time.Second)
	require.NotErrorIs(t, err, hook.ErrTimeout)
	assert.ErrorContains(t, err, "the API server did not answer within 1s")
}
