package executionhook

import (
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// done reports whether a hook was run, and its condition says how.
func done(h *v1alpha1.ExecutionHook) bool {
	switch conditions.GetReason(h, v1alpha1.ReadyCondition) {
	case v1alpha1.SucceededReason, v1alpha1.HookFailedReason, v1alpha1.HookInterruptedReason:
		return true
	}
	return false
}

// failed reports whether the command did not succeed in a container.
func failed(run v1alpha1.HookRun) bool {
	switch run.State {
	case v1alpha1.HookRunFailed, v1alpha1.HookRunInterrupted, v1alpha1.HookRunUnknown:
		return true
	}
	return false
}

// judge says how the run of a hook went.
func judge(h *v1alpha1.ExecutionHook, action *v1alpha1.HookAction) (reconcile.Outcome, error) {
	var failures int
	var first v1alpha1.HookRun
	for _, run := range h.Status.Runs {
		if failed(run) {
			if failures == 0 {
				first = run
			}
			failures++
		}
	}
	total := containers(len(h.Status.Runs))
	if failures == 0 {
		return reconcile.Outcome{Message: fmt.Sprintf("HookAction %q succeeded in %s", h.Spec.ActionName, total)}, nil
	}
	what := fmt.Sprintf("HookAction %q failed in Pod %q: %s", h.Spec.ActionName, first.Pod, first.Message)
	if action.Spec.OnError == v1alpha1.HookErrorContinue {
		return reconcile.Outcome{Message: fmt.Sprintf("%s (%d of %s; onError is Continue)", what, failures, total)}, nil
	}
	reason := v1alpha1.HookFailedReason
	if first.State == v1alpha1.HookRunInterrupted {
		reason = v1alpha1.HookInterruptedReason
	}
	return reconcile.Outcome{}, reconcile.Stalled(reason, "%s", what)
}

func containers(n int) string {
	if n == 1 {
		return "1 container"
	}
	return fmt.Sprintf("%d containers", n)
}
