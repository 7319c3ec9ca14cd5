package executionhook_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/hook"
	"waybill.dev/waybill/test/hub"
)

const (
	pending     = v1alpha1.HookRunPending
	running     = v1alpha1.HookRunRunning
	succeeded   = v1alpha1.HookRunSucceeded
	failed      = v1alpha1.HookRunFailed
	interrupted = v1alpha1.HookRunInterrupted
	unknown     = v1alpha1.HookRunUnknown
)

// S60, S63, S87, C20: in the containers of the Pods that are named, one after the other, and that
// it is about to run is known before it does.
func TestExecutionHook_runsOneAfterTheOther(t *testing.T) {
	var w *world
	var calls []call
	var before [][]v1alpha1.HookRunState
	w = newWorld(t, func(_ context.Context, c call) (hook.Result, error) {
		h := &v1alpha1.ExecutionHook{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "lock-1"}, h); err != nil {
			return hook.Result{}, err
		}
		calls, before = append(calls, c), append(before, states(h))
		return hook.Result{Output: []byte(`{"tags": {"` + c.Pod + `": "locked"}}`)}, nil
	})
	w.action("")
	w.pod("db-0")
	w.pod("db-1")
	h := hub.AwaitReady(w.World, w.run(v1alpha1.HookPod{Name: "db-1", Container: "metrics"}, v1alpha1.HookPod{Name: "db-0"}))

	command := []string{"db", "lock"}
	assert.Equal(t, []call{
		{hook.Target{Namespace: w.Namespace, Pod: "db-1", Container: "metrics"}, command, 7 * time.Second},
		{hook.Target{Namespace: w.Namespace, Pod: "db-0", Container: "db"}, command, 7 * time.Second},
	}, calls)
	assert.Equal(t, [][]v1alpha1.HookRunState{{running, pending}, {succeeded, running}}, before)
	assert.Equal(t, []v1alpha1.HookRunState{succeeded, succeeded}, states(h))
	assert.Equal(t, map[string]string{"db-0": "locked", "db-1": "locked"}, h.Status.Tags)
	assert.Equal(t, `HookAction "lock" succeeded in 2 containers`, h.Status.Conditions[0].Message)
}

// C20: what follows a failure is for the HookAction to say.
func TestExecutionHook_fails(t *testing.T) {
	code := func(n int32, said string) runner {
		return func(context.Context, call) (hook.Result, error) { return hook.Result{ExitCode: n, Errors: said}, nil }
	}
	for name, test := range map[string]struct {
		answer  runner
		onError v1alpha1.HookErrorPolicy
		pod     v1alpha1.HookPod
		want    []v1alpha1.HookRunState
		message string
	}{
		"exit code": {
			answer: code(3, "no such database"), want: []v1alpha1.HookRunState{failed, pending},
			message: `HookAction "lock" failed in Pod "db-0": the command exited with code 3: no such database`,
		},
		"timeout": {
			answer: func(context.Context, call) (hook.Result, error) { return hook.Result{}, hook.ErrTimeout },
			want:   []v1alpha1.HookRunState{failed, pending}, message: "the command did not exit within 7s; it may still run",
		},
		"connection": {
			answer: func(context.Context, call) (hook.Result, error) { return hook.Result{}, errors.New("connection reset") },
			want:   []v1alpha1.HookRunState{unknown, pending}, message: "connection reset",
		},
		"tags": {
			answer: func(context.Context, call) (hook.Result, error) {
				return hook.Result{Output: []byte(`{"tags": {"a b": "c"}}`)}, nil
			},
			want: []v1alpha1.HookRunState{failed, pending}, message: `tags: invalid key "a b"`,
		},
		"no such container": {
			answer: code(0, ""), pod: v1alpha1.HookPod{Container: "web"},
			want: []v1alpha1.HookRunState{failed, pending}, message: `Pod "db-0" has no container "web"`,
		},
		"another Pod of that name": {
			answer: code(0, ""), pod: v1alpha1.HookPod{UID: "of-the-one-before"},
			want: []v1alpha1.HookRunState{failed, pending}, message: `Pod "db-0" does not exist any more`,
		},
		"the others follow": {
			answer: func(ctx context.Context, c call) (hook.Result, error) {
				if c.Pod == "db-0" {
					return hook.Result{ExitCode: 1}, nil
				}
				return hook.Result{}, nil
			},
			onError: v1alpha1.HookErrorContinue, want: []v1alpha1.HookRunState{failed, succeeded},
			message: `HookAction "lock" failed in Pod "db-0": the command exited with code 1 (1 of 2 containers; onError is Continue)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.answer)
			w.action(test.onError)
			w.pod("db-0")
			w.pod("db-1")
			test.pod.Name = "db-0"
			h := w.run(test.pod, v1alpha1.HookPod{Name: "db-1"})
			var message string
			if test.onError == v1alpha1.HookErrorContinue {
				message = hub.AwaitReady(w.World, h).Status.Conditions[0].Message
			} else {
				message = hub.AwaitReason(w.World, h, v1alpha1.HookFailedReason)
			}
			assert.Contains(t, message, test.message)
			require.True(t, w.Exists(h, h.Name))
			assert.Equal(t, test.want, states(h))
		})
	}
}

// S95: how a command ended whose process is gone is not known, and it is not run again.
func TestExecutionHook_isNotRunTwice(t *testing.T) {
	began := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, _ call) (hook.Result, error) {
		close(began)
		<-ctx.Done()
		return hook.Result{}, ctx.Err()
	})
	w.action("")
	w.pod("db-0")
	h := w.run(v1alpha1.HookPod{Name: "db-0"})
	select {
	case <-began:
	case <-time.After(hub.Limit):
		require.Fail(t, "the command was not run")
	}
	w.restart(func() {
		w.answer(func(context.Context, call) (hook.Result, error) {
			assert.Fail(t, "the command was run again")
			return hook.Result{}, nil
		})
	})
	assert.Equal(t, `HookAction "lock" failed in Pod "db-0": waybill-sync ended while the command ran; whether it succeeded is not known`,
		hub.AwaitReason(w.World, h, v1alpha1.HookInterruptedReason))
	require.True(t, w.Exists(h, h.Name))
	assert.Equal(t, []v1alpha1.HookRunState{interrupted}, states(h))
}

// S64: the order in which they are created does not matter.
func TestExecutionHook_waitsForItsAction(t *testing.T) {
	w := newWorld(t, func(context.Context, call) (hook.Result, error) { return hook.Result{}, nil })
	w.pod("db-0")
	h := w.run(v1alpha1.HookPod{Name: "db-0"})
	assert.Equal(t, `HookAction "lock" does not exist in namespace "`+w.Namespace+`"`, hub.AwaitReason(w.World, h, v1alpha1.HookActionNotFoundReason))
	w.action("")
	hub.AwaitReady(w.World, h)
}

// S60: who deletes it is not waited for.
func TestExecutionHook_goesAtOnce(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(ctx context.Context, _ call) (hook.Result, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return hook.Result{}, ctx.Err()
	})
	w.action("")
	w.pod("db-0")
	h := w.run(v1alpha1.HookPod{Name: "db-0"})
	for _, what := range []<-chan struct{}{began, ended} {
		select {
		case <-what:
		case <-time.After(hub.Limit):
			require.Fail(t, "the command was not run, or its connection is still there")
		}
		require.NoError(t, client.IgnoreNotFound(w.Client.Delete(t.Context(), h)))
	}
}

// S60: it is one run.
func TestExecutionHook_isImmutable(t *testing.T) {
	w := newWorld(t, nil)
	h := w.run(v1alpha1.HookPod{Name: "db-0"})
	change := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"actionName": "unlock"}}`))
	assert.ErrorContains(t, w.Client.Patch(t.Context(), h, change), "spec is immutable: an ExecutionHook is one run; create another one")
}

// S60, S94: what is run can be said when the run is created, and is not what the HookAction says by then.
func TestExecutionHook_hasAnActionOfItsOwn(t *testing.T) {
	for name, exists := range map[string]bool{"the HookAction says something else": true, "there is none": false} {
		t.Run(name, func(t *testing.T) {
			var commands [][]string
			w := newWorld(t, func(_ context.Context, c call) (hook.Result, error) {
				commands = append(commands, c.command)
				return hook.Result{}, nil
			})
			if exists {
				w.action("")
			}
			w.pod("db-0")
			h := &v1alpha1.ExecutionHook{
				ObjectMeta: metav1.ObjectMeta{Name: "lock-1"},
				Spec: v1alpha1.ExecutionHookSpec{
					ActionName: "lock", Pods: []v1alpha1.HookPod{{Name: "db-0"}},
					Action: &v1alpha1.HookActionSpec{Action: v1alpha1.HookHandler{Exec: v1alpha1.ExecAction{Command: []string{"db", "as-planned"}}}},
				},
			}
			w.Create(h)
			hub.AwaitReady(w.World, h)
			assert.Equal(t, [][]string{{"db", "as-planned"}}, commands)
		})
	}
}
