package executionhook_test

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/executionhook"
	"waybill.dev/waybill/sync/data/hook"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

// call is one command that the controller has run.
type call struct {
	hook.Target
	command []string
	timeout time.Duration
}

// runner answers commands as a test says: the Pods of these tests run nowhere. That of the product is
// tested in package hook.
type runner func(ctx context.Context, c call) (hook.Result, error)

func (r runner) Run(ctx context.Context, t hook.Target, command []string, timeout time.Duration) (hook.Result, error) {
	return r(ctx, call{t, command, timeout})
}

// world is that of one test: a namespace on the cluster that all share, on which one controller runs.
type world struct {
	*hub.World
	cluster *env.Cluster
}

var shared struct {
	sync.Mutex
	process *hub.Process
	// answers has the runner of each test, by its namespace.
	answers map[string]runner
}

// newWorld returns a world whose commands run by answer.
func newWorld(t *testing.T, answer runner) *world {
	c := env.Shared(t, env.Options{Name: "cluster", CRDs: []string{"../../../charts/waybill/crds"}})
	w := &world{hub.NewWorld(t, c), c}
	w.answer(answer)
	shared.Lock()
	defer shared.Unlock()
	if shared.process == nil {
		shared.process = w.start()
	}
	return w
}

// answer has the commands of the test run by another function from now on.
func (w *world) answer(answer runner) {
	shared.Lock()
	defer shared.Unlock()
	if shared.answers == nil {
		shared.answers = map[string]runner{}
	}
	shared.answers[w.Namespace] = answer
}

// start runs a controller.
func (w *world) start() *hub.Process {
	return hub.Start(w.T, w.cluster, func(ctx context.Context, mgr ctrl.Manager, _ hub.Shared) error {
		return (&executionhook.Reconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("executionhook"), Pods: mgr.GetAPIReader(),
			Runner: runner(func(ctx context.Context, c call) (hook.Result, error) {
				shared.Lock()
				answer := shared.answers[c.Namespace]
				shared.Unlock()
				return answer(ctx, c)
			}),
		}).SetupWithManager(ctx, mgr)
	})
}

// restart ends the controller, then calls between, and runs another one.
func (w *world) restart(between func()) {
	shared.Lock()
	process := shared.process
	shared.Unlock()
	process.Stop()
	between()
	shared.Lock()
	defer shared.Unlock()
	shared.process = w.start()
}

// pod creates a Pod with two containers.
func (w *world) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "db", Image: "example.com/db"}, {Name: "metrics", Image: "example.com/metrics"},
		}},
	}
	w.Create(pod)
	return pod
}

// action creates the HookAction `lock`.
func (w *world) action(onError v1alpha1.HookErrorPolicy) {
	w.Create(&v1alpha1.HookAction{
		ObjectMeta: metav1.ObjectMeta{Name: "lock"},
		Spec: v1alpha1.HookActionSpec{
			Action:  v1alpha1.HookHandler{Exec: v1alpha1.ExecAction{Command: []string{"db", "lock"}}},
			Timeout: metav1.Duration{Duration: 7 * time.Second}, OnError: onError,
		},
	})
}

// run creates an ExecutionHook of `lock` for these Pods.
func (w *world) run(pods ...v1alpha1.HookPod) *v1alpha1.ExecutionHook {
	h := &v1alpha1.ExecutionHook{
		ObjectMeta: metav1.ObjectMeta{Name: "lock-1"},
		Spec:       v1alpha1.ExecutionHookSpec{ActionName: "lock", Pods: pods},
	}
	w.Create(h)
	return h
}

// states returns how far the command is in each Pod.
func states(h *v1alpha1.ExecutionHook) []v1alpha1.HookRunState {
	var found []v1alpha1.HookRunState
	for _, r := range h.Status.Runs {
		found = append(found, r.State)
	}
	return found
}
