package restore

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
)

// marks are the labels and annotations by which something that delivers objects knows its own. A copy
// that has them may be pruned, or mistaken for the original.
var marks = map[string]bool{
	v1alpha1.OwnerHashLabel:             true,
	v1alpha1.OwnerAnnotation:            true,
	v1alpha1.ResourceUIDAnnotation:      true,
	v1alpha1.KubernetesApplicationLabel: true,
	v1alpha1.TemplatedAnnotation:        true,
	v1alpha1.HeldByAnnotation:           true,
	v1alpha1.RestoredByAnnotation:       true,
	v1alpha1.ReconcileAtAnnotation:      true,
	v1alpha1.RestoredClaimsAnnotation:   true,
	v1alpha1.ProvidedLabel:              true,

	"meta.helm.sh/release-name":             true,
	"meta.helm.sh/release-namespace":        true,
	"helm.toolkit.fluxcd.io/name":           true,
	"helm.toolkit.fluxcd.io/namespace":      true,
	"kustomize.toolkit.fluxcd.io/name":      true,
	"kustomize.toolkit.fluxcd.io/namespace": true,
	"kustomize.toolkit.fluxcd.io/checksum":  true,
	"argocd.argoproj.io/instance":           true,
	"argocd.argoproj.io/tracking-id":        true,
	"argocd.argoproj.io/installation-id":    true,
	"config.k8s.io/owning-inventory":        true,
}

// Detach removes from a definition the marks of what delivered it, Waybill or another tool: a copy has
// no owner. Membership of an Application that Waybill wrote goes, too: it is written again.
func Detach(obj *unstructured.Unstructured) {
	annotations, labels := obj.GetAnnotations(), obj.GetLabels()
	injected := annotations[v1alpha1.InjectedAnnotation]
	drop := func(key, value string) bool {
		switch key {
		case v1alpha1.InjectedAnnotation:
			return true
		case v1alpha1.ApplicationAnnotation, v1alpha1.PartOfLabel:
			return injected != "" && value == injected
		default:
			return marks[key]
		}
	}
	dropAnnotations(obj, func(key string) bool { return drop(key, annotations[key]) })
	for key, value := range labels {
		if drop(key, value) {
			unstructured.RemoveNestedField(obj.Object, "metadata", "labels", key)
		}
	}
	if len(obj.GetLabels()) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "labels")
	}
}
