package webhooks

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

const (
	hookActionResource    = "hookactions"
	executionHookResource = "executionhooks"
)

// needsExec returns the right to run commands in the Pods of a namespace.
func needsExec(namespace, because string) need {
	return needs(because, authorizationv1.ResourceAttributes{
		Verb: "create", Resource: "pods", Subresource: "exec", Namespace: namespace,
	})
}

// hookActions are the rules of HookAction. What it says runs in others' snapshots, too, so writing it
// takes the right to run it.
type hookActions struct {
	access *access
}

func (*hookActions) validate(_, _ *v1alpha1.HookAction) (admission.Warnings, field.ErrorList) {
	return nil, nil // the schema says it all
}

func (*hookActions) specChanged(obj, old *v1alpha1.HookAction) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (h *hookActions) review(ctx context.Context, obj, _ *v1alpha1.HookAction) (admission.Warnings, error) {
	return nil, h.access.check(ctx, obj, hookActionResource, []need{needsExec(obj.Namespace, "its command runs in Pods of the namespace")})
}

// executionHooks are the rules of ExecutionHook.
type executionHooks struct {
	access *access
}

func (*executionHooks) validate(_, _ *v1alpha1.ExecutionHook) (admission.Warnings, field.ErrorList) {
	return nil, nil // the schema says it all
}

func (*executionHooks) specChanged(obj, old *v1alpha1.ExecutionHook) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (e *executionHooks) review(ctx context.Context, obj, _ *v1alpha1.ExecutionHook) (admission.Warnings, error) {
	return nil, e.access.check(ctx, obj, executionHookResource, []need{needsExec(obj.Namespace, "it runs a command in Pods of the namespace")})
}
