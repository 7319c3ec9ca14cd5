package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/await"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/output"
)

// final are the reasons with which AgentReady waits for a change by a user.
var final = []string{v1alpha1.InvalidValuesReason, v1alpha1.InvalidChartReason, v1alpha1.ReleaseConflictReason, v1alpha1.AgentNotInstalledReason}

// follow asks the hub to connect now, waits until it has, and says so.
func (o *add) follow(ctx context.Context, e *entry) error {
	object, err := e.request(ctx)
	if err != nil {
		return err
	}
	token := object.GetAnnotations()[v1alpha1.ReconcileAtAnnotation]
	begin := time.Now()
	progress := output.NewProgress(o.env.ErrOut, describe(e.cluster))
	last, err := await.Until(ctx, e.hub, object, func(live *unstructured.Unstructured) bool {
		kc := decode(live)
		progress.Update(said(kc))
		return ended(kc, token)
	})
	progress.Stop()
	kc := decode(last)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && kc.Status.LastHandledReconcileAt != token:
		return fmt.Errorf("%s: not reconciled yet: check that waybill-sync runs in the hub, with the role driver", describe(e.cluster))
	case err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("wait for %s: %w", describe(e.cluster), e.hub.Explain(err))
	case asWanted(kc):
		fmt.Fprintf(o.env.Out, "%s: ready: %s (%s)\n", describe(e.cluster), printers.EscapeTerminal(said(kc)), time.Since(begin).Round(time.Millisecond))
		return nil
	}
	fmt.Fprintf(o.env.Out, "%s: not ready: %s\n", describe(e.cluster), printers.EscapeTerminal(output.Shorten(said(kc))))
	return cli.ErrNegative
}

// request asks for a reconciliation of the KubernetesCluster, and returns it as it is then.
func (e *entry) request(ctx context.Context) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1alpha1.ReconcileAtAnnotation: time.Now().UTC().Format(time.RFC3339Nano),
	}}})
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesClusterKind))
	object.SetNamespace(e.cluster.Namespace)
	object.SetName(e.cluster.Name)
	if err := e.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(cli.FieldManager)); err != nil {
		return nil, fmt.Errorf("ask the hub to connect to %s: %w", e.cluster.Name, e.hub.Explain(err))
	}
	return object, nil
}

// decode returns a KubernetesCluster that was read without its type; an empty one for what is none.
func decode(live *unstructured.Unstructured) *v1alpha1.KubernetesCluster {
	kc := &v1alpha1.KubernetesCluster{}
	if live == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, kc) != nil {
		return &v1alpha1.KubernetesCluster{}
	}
	return kc
}

// ended reports whether nothing more is to be waited for.
func ended(kc *v1alpha1.KubernetesCluster, token string) bool {
	if kc.Status.LastHandledReconcileAt != token || kc.Status.ObservedGeneration < kc.Generation {
		return false
	}
	if asWanted(kc) || apimeta.IsStatusConditionTrue(kc.Status.Conditions, v1alpha1.StalledCondition) {
		return true
	}
	ready, agent := condition(kc, v1alpha1.ReadyCondition), condition(kc, v1alpha1.AgentReadyCondition)
	return ready.Reason == v1alpha1.SuspendedReason ||
		ready.Status == metav1.ConditionTrue && agent.Status == metav1.ConditionFalse && slices.Contains(final, agent.Reason)
}

// asWanted reports whether everything is as wanted.
func asWanted(kc *v1alpha1.KubernetesCluster) bool {
	return condition(kc, v1alpha1.ReadyCondition).Status == metav1.ConditionTrue &&
		(kc.Spec.Agent == nil || condition(kc, v1alpha1.AgentReadyCondition).Status == metav1.ConditionTrue)
}

// said returns what the KubernetesCluster says of itself: first what is not as wanted.
func said(kc *v1alpha1.KubernetesCluster) string {
	ready := condition(kc, v1alpha1.ReadyCondition)
	if kc.Spec.Agent == nil || ready.Status != metav1.ConditionTrue {
		return ready.Message
	}
	agent := condition(kc, v1alpha1.AgentReadyCondition)
	if agent.Status == metav1.ConditionTrue {
		return ready.Message + "; agent " + agent.Message
	}
	return "the agent: " + agent.Message
}

func condition(kc *v1alpha1.KubernetesCluster, name string) metav1.Condition {
	if c := apimeta.FindStatusCondition(kc.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}
