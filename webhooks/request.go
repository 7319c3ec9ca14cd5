package webhooks

import (
	"context"
	"encoding/json"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

// delivered says whether the request names a field manager of ours: it comes from a GitSync, from
// an initial request, or from a controller.
//
// GitSyncs act under any ServiceAccount, and drivers under whatever a kubeconfig says, so
// identities cannot tell. A user who borrows the name of the field manager gains nothing but a
// later complaint: wherever it matters, permissions are checked as well.
func delivered(ctx context.Context) bool {
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return false
	}
	var options struct {
		FieldManager string `json:"fieldManager"`
	}
	if err := json.Unmarshal(req.Options.Raw, &options); err != nil {
		return false
	}
	return options.FieldManager == v1alpha1.FieldManager || options.FieldManager == v1alpha1.HelmFieldManager
}
