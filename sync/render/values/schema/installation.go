package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

// CheckInstallation returns what is certainly wrong with the values that an installation sets itself. They
// must have passed validation. Values of valuesFrom, which the installation overrides, are not checked.
func (s *Schema) CheckInstallation(inst *v1alpha1.ApplicationInstallation) field.ErrorList {
	values, path, err := own(&inst.Spec)
	if err != nil || len(values) == 0 {
		return nil // validation says what cannot be parsed
	}
	found, err := s.Check(values)
	if err != nil {
		return nil
	}
	var errs field.ErrorList
	for _, f := range found {
		message := fmt.Sprintf("%s (by the schema of %s, version %s)", f.Message, inst.Spec.ApplicationRef.Name, inst.Spec.ApplicationRef.Version)
		errs = append(errs, field.Invalid(At(path, f.Path), field.OmitValueType{}, message))
	}
	return errs
}

// own returns the values that an installation sets, and the field that they are in.
func own(spec *v1alpha1.ApplicationInstallationSpec) (map[string]any, *field.Path, error) {
	var values map[string]any
	if spec.Values != nil {
		err := json.Unmarshal(spec.Values.Raw, &values)
		return values, field.NewPath("spec", "values"), err
	}
	err := yaml.Unmarshal([]byte(spec.ValuesBlock), &values)
	return values, field.NewPath("spec", "valuesBlock"), err
}

// At returns the path of a value below that of the values.
func At(values *field.Path, path []string) *field.Path {
	for _, name := range path {
		index, err := strconv.Atoi(strings.Trim(name, "[]"))
		switch {
		case err == nil && strings.HasPrefix(name, "["):
			values = values.Index(index)
		case len(apivalidation.IsConfigMapKey(name)) == 0 && !strings.Contains(name, "."):
			values = values.Child(name)
		default:
			values = values.Key(name)
		}
	}
	return values
}
