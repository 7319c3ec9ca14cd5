package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// ValidateKubernetesCluster returns what is wrong with a KubernetesCluster. No field of it is immutable; old
// may be nil. What the kubeconfig may hold is checked where it is read.
func ValidateKubernetesCluster(obj, old *v1alpha1.KubernetesCluster) field.ErrorList {
	errs := validateMetadata(obj.ObjectMeta, namespaced)
	if ref := obj.Spec.KubeconfigSecretRef; ref != nil {
		path := specPath.Child("kubeconfigSecretRef")
		errs = append(errs, validateObjectName(ref.Name, path.Child("name"))...)
		errs = append(errs, validateDataKey(ref.Key, path.Child("key"))...)
	}
	errs = append(errs, validateInitialInstallations(obj, old)...)
	return append(errs, validateEnum(obj.Spec.OnDelete, specPath.Child("onDelete"),
		v1alpha1.DeleteWait, v1alpha1.DeleteAbandon)...)
}

// KubernetesClusterWarnings returns what is allowed in a KubernetesCluster and unwise.
func KubernetesClusterWarnings(obj *v1alpha1.KubernetesCluster) []string {
	if obj.Spec.OnDelete != v1alpha1.DeleteAbandon {
		return nil
	}
	return []string{specPath.Child("onDelete").String() +
		" is Abandon: what Waybill delivered to the cluster stays there when this object is deleted"}
}
