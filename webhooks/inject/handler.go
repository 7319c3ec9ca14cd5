package inject

import (
	"context"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/membership"
)

// handler answers for objects of any kind. It never refuses a request.
type handler struct {
	applications *applications
}

// Handle implements admission.Handler.
func (h *handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	start := time.Now()
	response, outcome := h.answer(ctx, req)
	count(start, outcome)
	return response
}

func (h *handler) answer(ctx context.Context, req admission.Request) (admission.Response, string) {
	ours := req.SubResource == "" && (req.Operation == admissionv1.Create || req.Operation == admissionv1.Update)
	if !ours || !h.applications.synced.Load() { // Applications that are not read yet must not look deleted
		return admission.Allowed(""), skipped
	}
	obj, err := metadataOf(req.Object.Raw)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "leaving an object as it is", "kind", req.Kind.Kind, "namespace", req.Namespace)
		return admission.Allowed(""), failed
	}
	obj.Namespace = req.Namespace
	marks := membership.Decide(&h.applications.index, schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}, obj)
	patch := patchOf(obj, marks)
	response := admission.Allowed("")
	if len(patch) > 0 {
		response = admission.Patched("", patch...)
	}
	return response.WithWarnings(marks.Warnings...), outcomeOf(marks, patch)
}

func outcomeOf(marks membership.Marks, patch []jsonpatch.Operation) string {
	switch name, ok := marks.Annotations[v1alpha1.InjectedAnnotation]; {
	case ok && name != nil:
		return injected
	case ok:
		return released
	case len(patch) > 0:
		return relabelled
	case len(marks.Warnings) > 0:
		return warned
	}
	return unchanged
}
