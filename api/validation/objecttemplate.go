package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// The limits of resource templates, as in their schema.
const (
	maxResourceNameLength = 63
	maxResourceSecrets    = 50
	maxSecretNameLength   = 189
)

// identityAdvice says why the identity of a templated object is immutable.
const identityAdvice = "a change would orphan the object; give the resource template another name"

// byServer are the fields of metadata that only an API server sets: a manifest with one of them
// was read from another cluster, and cannot be applied.
var byServer = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "ownerReferences"}

// validateObjectTemplate checks what every manifest must have. What the kind demands is
// only known to the user cluster.
func validateObjectTemplate(template v1alpha1.ObjectTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	gv, err := schema.ParseGroupVersion(template.APIVersion)
	switch {
	case template.APIVersion == "":
		errs = append(errs, field.Required(path.Child("apiVersion"), ""))
	case err != nil:
		errs = append(errs, field.Invalid(path.Child("apiVersion"), template.APIVersion, err.Error()))
	default:
		errs = append(errs, formatErrors(gv.Version, path.Child("apiVersion"), validation.IsDNS1035Label)...)
		errs = append(errs, validateGroupKind(gv.Group, template.Kind, path)...)
	}
	metadata := path.Child("metadata")
	if template.Metadata.Name == "" {
		errs = append(errs, field.Required(metadata.Child("name"), "generateName cannot be used: the object has to be found again"))
	}
	errs = append(errs, formatErrors(template.Metadata.Name, metadata.Child("name"), content.IsPathSegmentName)...)
	if template.Metadata.Namespace != "" {
		errs = append(errs, validateDNSLabel(template.Metadata.Namespace, metadata.Child("namespace"))...)
	}
	if len(errs) > 0 {
		return errs
	}
	object, err := template.Object()
	if err != nil {
		return append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	if object.IsList() {
		errs = append(errs, field.Forbidden(path.Child("items"), "a template is of one object: give each a resource template of its own"))
	}
	return append(errs, validateManifestMetadata(object, metadata)...)
}

// validateManifestMetadata checks the metadata of a manifest that holds for every kind.
func validateManifestMetadata(object *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	labels, _, err := unstructured.NestedStringMap(object.Object, "metadata", "labels")
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("labels"), field.OmitValueType{}, "must be a map of strings"))
	}
	errs = append(errs, metav1validation.ValidateLabels(labels, path.Child("labels"))...)
	annotations, _, err := unstructured.NestedStringMap(object.Object, "metadata", "annotations")
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("annotations"), field.OmitValueType{}, "must be a map of strings"))
	}
	errs = append(errs, apivalidation.ValidateAnnotations(annotations, path.Child("annotations"))...)
	for _, name := range byServer {
		if value, found, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", name); found && value != nil {
			errs = append(errs, field.Forbidden(path.Child(name), "is set by the API server: remove it from the template"))
		}
	}
	return errs
}

// validateResourceSecrets checks the Secrets of a resource. A cluster-scoped object has
// no namespace to copy them into.
func validateResourceSecrets(secrets []v1alpha1.ResourceSecretReference, kind schema.GroupKind, path *field.Path) field.ErrorList {
	errs := atMost(len(secrets), maxResourceSecrets, path)
	errs = append(errs, duplicates(secrets, path, func(s v1alpha1.ResourceSecretReference) string { return s.Name })...)
	for i, secret := range secrets {
		name := path.Index(i).Child("name")
		errs = append(errs, validateObjectName(secret.Name, name)...)
		if len(secret.Name) > maxSecretNameLength {
			errs = append(errs, field.TooLong(name, secret.Name, maxSecretNameLength))
		}
	}
	if len(secrets) > 0 && clusterScopedKind(kind) {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("kind %s is cluster-scoped: it has no namespace to copy Secrets into", kind)))
	}
	return errs
}

// clusterScopedKinds are those of Kubernetes itself, by group.
var clusterScopedKinds = map[string][]string{
	"":                             {"Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
}

// clusterScopedKind says whether a kind of Kubernetes itself has no namespace; of other kinds it
// does not know.
func clusterScopedKind(kind schema.GroupKind) bool {
	return slices.Contains(clusterScopedKinds[kind.Group], kind.Kind)
}
