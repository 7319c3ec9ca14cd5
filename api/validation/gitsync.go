package validation

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// minInterval is the shortest interval and timeout that a user may ask for.
const minInterval = time.Second

// ValidateGitSync returns what is wrong with a GitSync. No field of it is immutable, so old
// may be nil.
func ValidateGitSync(obj, _ *v1alpha1.GitSync) field.ErrorList {
	spec := &obj.Spec
	errs := validateMetadata(obj.ObjectMeta, namespaced)
	errs = append(errs, validateGitURL(spec.URL, spec.SecretRef != nil, specPath.Child("url"))...)
	errs = append(errs, validateGitReference(spec.Ref, specPath.Child("ref"))...)
	errs = append(errs, validateSourcePath(spec.Path, specPath.Child("path"))...)
	errs = append(errs, validateInterval(spec.Interval, specPath.Child("interval"))...)
	errs = append(errs, validateInterval(spec.Timeout, specPath.Child("timeout"))...)
	if spec.SecretRef != nil {
		errs = append(errs, validateObjectName(spec.SecretRef.Name, specPath.Child("secretRef", "name"))...)
	}
	if spec.TargetNamespace != "" {
		errs = append(errs, validateDNSLabel(spec.TargetNamespace, specPath.Child("targetNamespace"))...)
	}
	errs = append(errs, validateAccount(spec.ServiceAccountName)...)
	errs = append(errs, validateIgnoredDifferences(spec.IgnoreDifferences)...)
	return append(errs, validateSelector(spec.ClusterSelector, specPath.Child("clusterSelector"))...)
}

// validateAccount accepts the name of a ServiceAccount in spec.serviceAccountName, and none.
func validateAccount(name string) field.ErrorList {
	if name == "" {
		return nil
	}
	return validateDNSSubdomain(name, specPath.Child("serviceAccountName"))
}

// GitSyncWarnings returns what is allowed in a GitSync and unwise.
func GitSyncWarnings(obj *v1alpha1.GitSync) []string {
	warnings := gitReferenceWarnings(obj.Spec.Ref, specPath.Child("ref"))
	if strings.HasPrefix(obj.Spec.URL, "http://") {
		warnings = append(warnings, specPath.Child("url").String()+" is not encrypted: anyone on the network path can change what is applied")
	}
	return warnings
}

// validateInterval accepts zero, which stands for the default.
func validateInterval(d metav1.Duration, path *field.Path) field.ErrorList {
	if d.Duration == 0 || d.Duration >= minInterval {
		return nil
	}
	return field.ErrorList{field.Invalid(path, d.Duration.String(), "must be 1s or more, in hours, minutes and seconds: 24h, 1h30m, 90s")}
}
