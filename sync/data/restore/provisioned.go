package restore

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// provisionedBy is on every volume that was made for a claim.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// Provisioned reports whether the volume that a claim is bound to was made for it, and so has the content of its data
// source. Kubernetes does not look at that when it binds a claim to a volume that is there already, such as one that was
// provisioned for another claim and released. A provisioner puts the UID of the claim into the name of the volume,
// unless it is configured otherwise; then the volume must not be older than the claim.
func Provisioned(pv *corev1.PersistentVolume, claim metav1.Object) bool {
	ref, created := pv.Spec.ClaimRef, claim.GetCreationTimestamp()
	return pv.Annotations[provisionedBy] != "" && ref != nil && ref.UID == claim.GetUID() &&
		(strings.Contains(pv.Name, string(claim.GetUID())) || !pv.CreationTimestamp.Before(&created))
}
