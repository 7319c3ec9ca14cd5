package applicationinstallation

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// restoredClaims returns the claims that were restored for an installation.
func restoredClaims(inst *v1alpha1.ApplicationInstallation) []string {
	text := inst.Annotations[v1alpha1.RestoredClaimsAnnotation]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// usesRestored returns an error if a kustomization that was never applied does not use the claims that
// were restored for it.
func usesRestored(p plan, objects []manifest.Object) error {
	if len(p.inventory) > 0 {
		return nil
	}
	plain := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		plain[i] = o.Unstructured
	}
	if unused := restore.Unused(restoredClaims(p.inst), plain); len(unused) > 0 {
		return reconcile.Stalled(v1alpha1.RestoredClaimsUnusedReason, "%s", restore.DescribeUnused(unused))
	}
	return nil
}
