package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/await"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/output"
)

// outcome is the result of a reconciliation.
type outcome struct {
	ready            bool
	revision, reason string
	message          string
	took             time.Duration
}

// String returns the outcome in one line.
func (o outcome) String() string {
	if !o.ready {
		return printers.EscapeTerminal(output.Shorten("not ready: " + o.reason + ": " + o.message))
	}
	text := o.message
	if o.revision != "" && !strings.Contains(text, o.revision) {
		text = o.revision + ", " + text
	}
	return fmt.Sprintf("ready: %s (%s)", printers.EscapeTerminal(output.Shorten(text)), o.took.Round(time.Millisecond))
}

// awaitOutcome watches an object, as it is since it was annotated with token, until the reconciliation
// requested by that is done. progress is called with what the object says meanwhile.
func awaitOutcome(ctx context.Context, target *fleet.Cluster, object *unstructured.Unstructured, token string, progress func(string)) (outcome, error) {
	if target.Paused && object.GetKind() == v1alpha1.ApplicationInstallationKind {
		return outcome{}, overdue(fmt.Sprintf("KubernetesCluster %s is paused, so it is not reconciled until that is resumed: "+
			"waybill resume cluster/%s -n %s", target.Key, target.Key.Name, target.Key.Namespace))
	}
	begin := time.Now()
	last, err := await.Until(ctx, target, object, func(live *unstructured.Unstructured) bool {
		state := read(live, token)
		progress(state.message)
		return state.done
	})
	state := state{}
	if last != nil {
		state = read(last, token)
	}
	if !state.done {
		return outcome{}, explain(ctx, err, last, state)
	}
	return outcome{ready: state.ready, revision: state.revision, reason: state.reason, message: state.message, took: time.Since(begin)}, nil
}

// overdue is what did not happen in time, or will not.
type overdue string

// Error returns what did not happen in time.
func (o overdue) Error() string { return string(o) }

// explain returns why a wait ended early.
func explain(ctx context.Context, err error, last *unstructured.Unstructured, state state) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || last == nil {
		return err
	}
	switch {
	case !state.handled && last.GetKind() == v1alpha1.ApplicationInstallationKind:
		return overdue("not reconciled yet: check that waybill-sync runs, with the controller of this kind, and that the KubernetesCluster is not paused in the hub")
	case !state.handled:
		return overdue("not reconciled yet: check that waybill-sync runs, with the controller of this kind")
	}
	return overdue(fmt.Sprintf("not ready in time: %s: %s", state.reason, state.message))
}

// state is what an object reports about a requested reconciliation.
type state struct {
	handled, done, ready      bool
	reason, message, revision string
}

// patient lists the reasons of Ready=False with which an object waits for others, and becomes Ready
// without a new attempt.
var patient = []string{v1alpha1.NotHealthyReason, v1alpha1.ProgressingReason}

func read(object *unstructured.Unstructured, token string) state {
	status := v1alpha1.ReconcileStatus{}
	raw, _, _ := unstructured.NestedMap(object.Object, "status") // absent before the first pass
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &status); err != nil {
		return state{message: err.Error()}
	}
	answered := answers(status.LastHandledReconcileAt, object.GetAnnotations()[v1alpha1.ReconcileAtAnnotation], token)
	s := state{handled: answered && status.ObservedGeneration >= object.GetGeneration()}
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ReadyCondition {
			s.ready = c.Status == metav1.ConditionTrue
			s.reason, s.message = c.Reason, c.Message
			s.done = s.handled && (c.Status != metav1.ConditionUnknown || c.Reason == v1alpha1.SuspendedReason) &&
				(s.ready || !slices.Contains(patient, c.Reason))
		}
		if c.Type == v1alpha1.StalledCondition && c.Status == metav1.ConditionTrue {
			s.done = s.handled
		}
	}
	s.revision, _, _ = unstructured.NestedString(raw, "revision")
	return s
}

// answers reports whether the handled request answers ours: it is ours, or the one that has replaced
// it in the annotation. Tokens are not compared as times, which come from the clocks of two machines.
func answers(handled, annotated, token string) bool {
	return handled == token || annotated != token && handled == annotated
}
