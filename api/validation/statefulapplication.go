package validation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// ValidateStatefulApplication returns what is wrong with a StatefulApplication. What is immutable in
// it the schema guards.
func ValidateStatefulApplication(obj *v1alpha1.StatefulApplication) field.ErrorList {
	spec := &obj.Spec
	errs := validateMetadata(obj.ObjectMeta, namespaced)
	errs = append(errs, validateOptionalName(spec.ApplicationClassName, specPath.Child("applicationClassName"))...)
	errs = append(errs, validateOptionalName(spec.ApplicationName, specPath.Child("applicationName"))...)
	errs = append(errs, validateDataSource(spec.Source, specPath.Child("source"))...)
	return append(errs, validateSubstitutions(spec.ValueSubstitutionRules, specPath.Child("valueSubstitutionRules"))...)
}

// ValidateStatefulApplicationClass returns what is wrong with a StatefulApplicationClass.
func ValidateStatefulApplicationClass(obj *v1alpha1.StatefulApplicationClass) field.ErrorList {
	errs := validateMetadata(obj.ObjectMeta, clusterScoped)
	errs = append(errs, validateHandler("handler", obj.Handler, obj.Parameters)...)
	return append(errs, validateNames(obj.StorageClassMapping, field.NewPath("storageClassMapping"))...)
}

// ValidateApplicationRollback returns what is wrong with an ApplicationRollback. What is immutable in
// it the schema guards.
func ValidateApplicationRollback(obj *v1alpha1.ApplicationRollback) field.ErrorList {
	spec := &obj.Spec
	errs := validateMetadata(obj.ObjectMeta, namespaced)
	errs = append(errs, validateObjectName(spec.SnapshotClassName, specPath.Child("snapshotClassName"))...)
	errs = append(errs, validateObjectName(spec.ApplicationName, specPath.Child("applicationName"))...)
	return append(errs, validateDataSource(&spec.Source, specPath.Child("source"))...)
}

func validateDataSource(source *v1alpha1.DataSource, path *field.Path) field.ErrorList {
	if source == nil || source.SnapshotRef == nil {
		return nil // the schema says what else is missing
	}
	ref := source.SnapshotRef
	errs := validateObjectName(ref.Name, path.Child("snapshotRef", "name"))
	if ref.Namespace != "" {
		errs = append(errs, validateDNSLabel(ref.Namespace, path.Child("snapshotRef", "namespace"))...)
	}
	return errs
}

// validateHandler checks which controller a class chooses, by the field of that name, and refuses
// parameters that Waybill would not act on.
func validateHandler(name, handler string, parameters map[string]string) field.ErrorList {
	if handler != v1alpha1.DataHandler || len(parameters) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("parameters"), name+" "+v1alpha1.DataHandler+" has no parameters: remove them")}
}

// validateNames checks a map from names of objects to names of objects.
func validateNames(names map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, from := range slices.Sorted(maps.Keys(names)) {
		errs = append(errs, validateDNSSubdomain(from, path.Key(from))...)
		errs = append(errs, validateObjectName(names[from], path.Key(from))...)
	}
	return errs
}

// validateOptionalName accepts the name of another object, and none.
func validateOptionalName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	return validateDNSSubdomain(name, path)
}
