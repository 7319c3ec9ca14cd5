package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	specPath     = field.NewPath("spec")
	metadataPath = field.NewPath("metadata")
)

type scope bool

const (
	namespaced    scope = true
	clusterScoped scope = false
)

// validateMetadata checks the metadata as the API server does. A namespaced object
// without a namespace is allowed: files leave it to the command line.
func validateMetadata(meta metav1.ObjectMeta, s scope) field.ErrorList {
	if s == namespaced && meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault
	}
	return apivalidation.ValidateObjectMeta(&meta, bool(s), apivalidation.NameIsDNSSubdomain, metadataPath)
}

// validateSelector checks the syntax of a label selector; nil is valid here.
func validateSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

func validateDNSSubdomain(name string, path *field.Path) field.ErrorList {
	return formatErrors(name, path, validation.IsDNS1123Subdomain)
}

func validateDNSLabel(name string, path *field.Path) field.ErrorList {
	return formatErrors(name, path, validation.IsDNS1123Label)
}

// validateObjectName checks the name of another object that a field must hold.
func validateObjectName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return validateDNSSubdomain(name, path)
}

// validateDataKey checks the optional key of a ConfigMap or a Secret.
func validateDataKey(key string, path *field.Path) field.ErrorList {
	if key == "" {
		return nil
	}
	return formatErrors(key, path, validation.IsConfigMapKey)
}

func formatErrors(value string, path *field.Path, check func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range check(value) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

// validateEnum accepts the empty value: it stands for the default.
func validateEnum[T ~string](value T, path *field.Path, allowed ...T) field.ErrorList {
	if value == "" {
		return nil
	}
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func immutable(path *field.Path, value any, advice string) *field.Error {
	return field.Invalid(path, value, "is immutable: "+advice)
}

func atMost(n, limit int, path *field.Path) field.ErrorList {
	if n <= limit {
		return nil
	}
	return field.ErrorList{field.TooMany(path, n, limit)}
}

func duplicates[T any](items []T, path *field.Path, key func(T) string) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[string]struct{}, len(items))
	for i, item := range items {
		k := key(item)
		if _, ok := seen[k]; ok {
			errs = append(errs, field.Duplicate(path.Index(i), k))
		}
		seen[k] = struct{}{}
	}
	return errs
}
