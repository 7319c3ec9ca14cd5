package executionhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/hook"
)

// result is what a job leaves to the next pass.
type result struct {
	runs []v1alpha1.HookRun
	tags map[string]string
	// err means that the state could not be recorded, so that nothing was run.
	err error
}

// work runs one ExecutionHook.
type work struct {
	reconciler *Reconciler
	hook       *v1alpha1.ExecutionHook
	action     *v1alpha1.HookAction
}

// run runs the command in one container after the other.
func (w *work) run(ctx context.Context) result {
	runs := &w.hook.Status.Runs
	if len(*runs) == 0 {
		for _, pod := range w.hook.Spec.Pods {
			*runs = append(*runs, v1alpha1.HookRun{Pod: pod.Name, PodUID: pod.UID, Container: pod.Container, State: v1alpha1.HookRunPending})
		}
	}
	for i := range *runs {
		run := &(*runs)[i]
		switch run.State {
		case v1alpha1.HookRunPending:
			if err := w.container(ctx, run); err != nil {
				return result{err: err}
			}
		case v1alpha1.HookRunRunning: // of a process that is gone
			run.State = v1alpha1.HookRunInterrupted
			run.Message = "waybill-sync ended while the command ran; whether it succeeded is not known"
		}
		if failed(*run) && w.action.Spec.OnError != v1alpha1.HookErrorContinue {
			break
		}
	}
	return result{runs: w.hook.Status.Runs, tags: w.hook.Status.Tags}
}

// container runs the command in one container. It returns an error if it could not be recorded that
// the command is about to run; then it did not.
func (w *work) container(ctx context.Context, run *v1alpha1.HookRun) error {
	if missing, err := w.find(ctx, run); missing != "" || err != nil {
		run.State, run.Message, run.CompletionTime = v1alpha1.HookRunFailed, missing, ptr.To(metav1.NowMicro())
		if err != nil {
			run.State, run.Message = v1alpha1.HookRunUnknown, err.Error()
		}
		return nil
	}
	run.State, run.StartTime = v1alpha1.HookRunRunning, ptr.To(metav1.NowMicro())
	if err := w.reconciler.kernel.Record(ctx, w.reconciler.Client, w.hook); err != nil {
		run.State, run.StartTime = v1alpha1.HookRunPending, nil
		return fmt.Errorf("record that HookAction %q is about to run: %w", w.action.Name, err)
	}
	target := hook.Target{Namespace: w.hook.Namespace, Pod: run.Pod, Container: run.Container}
	result, err := w.reconciler.Runner.Run(ctx, target, w.action.Spec.Action.Exec.Command, w.action.GetTimeout())
	run.CompletionTime = ptr.To(metav1.NowMicro())
	w.record(ctx, run, result, err)
	return nil
}

// record writes how a command ended into its run.
func (w *work) record(ctx context.Context, run *v1alpha1.HookRun, r hook.Result, err error) {
	run.State = v1alpha1.HookRunFailed
	switch {
	case errors.Is(err, hook.ErrTimeout):
		run.Message = fmt.Sprintf("the command did not exit within %s; it may still run", w.action.GetTimeout())
	case errors.Is(err, hook.ErrNotRunnable):
		run.Message = err.Error()
	case err != nil && ctx.Err() != nil:
		run.State, run.Message = v1alpha1.HookRunInterrupted, "waybill-sync ended while the command ran; whether it succeeded is not known"
	case err != nil:
		run.State, run.Message = v1alpha1.HookRunUnknown, err.Error()
	case r.ExitCode != 0:
		run.ExitCode, run.Message = &r.ExitCode, fmt.Sprintf("the command exited with code %d", r.ExitCode)
	default:
		run.ExitCode = &r.ExitCode
		tags, err := hook.Tags(r)
		if err != nil {
			run.Message = err.Error()
			return
		}
		run.State = v1alpha1.HookRunSucceeded
		if len(tags) > 0 && w.hook.Status.Tags == nil {
			w.hook.Status.Tags = map[string]string{}
		}
		maps.Copy(w.hook.Status.Tags, tags)
	}
	if r.Errors != "" && run.State == v1alpha1.HookRunFailed {
		run.Message += ": " + r.Errors
	}
}

// find writes into run which container the command runs in, and the UID of its Pod. It returns why there is none; an
// error if that is not known.
func (w *work) find(ctx context.Context, run *v1alpha1.HookRun) (missing string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	pod := &corev1.Pod{}
	err = w.reconciler.Pods.Get(ctx, types.NamespacedName{Namespace: w.hook.Namespace, Name: run.Pod}, pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && run.PodUID != "" && string(pod.UID) != run.PodUID:
		return fmt.Sprintf("Pod %q does not exist any more", run.Pod), nil
	case err != nil:
		return "", fmt.Errorf("get Pod %q: %w", run.Pod, err)
	case pod.DeletionTimestamp != nil:
		return fmt.Sprintf("Pod %q is being deleted", run.Pod), nil
	}
	if run.Container == "" {
		run.Container = pod.Spec.Containers[0].Name
	}
	if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == run.Container }) {
		return fmt.Sprintf("Pod %q has no container %q", run.Pod, run.Container), nil
	}
	run.PodUID = string(pod.UID)
	return "", nil
}
