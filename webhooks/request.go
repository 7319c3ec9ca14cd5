package webhooks

import (
	"context"
	"encoding/json"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

// delivered reports whether the request names one of our field managers, and so comes from a
// GitSync, from an initial request, or from a controller.
//
// GitSyncs act as any ServiceAccount, and drivers as whatever a kubeconfig says, so identities do
// not help. A user who borrows the name of the field manager gains nothing but a later complaint:
// wherever it matters, permissions are checked as well.
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
