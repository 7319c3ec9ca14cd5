package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// ValidateKubernetesApplicationResource returns what is wrong with the new
// KubernetesApplicationResource, and whether it may follow old.
func ValidateKubernetesApplicationResource(obj, old *v1alpha1.KubernetesApplicationResource) field.ErrorList {
	spec := &obj.Spec
	errs := validateMetadata(obj.ObjectMeta, namespaced)
	errs = append(errs, validateNameLength(obj.Name)...)
	errs = append(errs, validateClusterName(spec.ClusterName)...)
	template := specPath.Child("template")
	errs = append(errs, validateObjectTemplate(spec.Template, template)...)
	errs = append(errs, validateResourceSecrets(spec.Secrets, spec.Template.GroupVersionKind().GroupKind(), specPath.Child("secrets"))...)
	if old == nil {
		return append(errs, validateRoom(spec.Template, template)...)
	}
	if !apiequality.Semantic.DeepEqual(spec.Template, old.Spec.Template) {
		errs = append(errs, validateRoom(spec.Template, template)...)
	}
	errs = append(errs, immutableClusterName(spec.ClusterName, old.Spec.ClusterName)...)
	return append(errs, immutableIdentity(spec.Template, old.Spec.Template, template)...)
}
