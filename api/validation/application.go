package validation

import (
	"slices"

	"github.com/fluxcd/pkg/runtime/cel"
	celgo "github.com/google/cel-go/cel"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// The limits of an Application, as in its schema.
const (
	maxComponents        = 1000
	maxDependencies      = 100
	maxHealthExpressions = 50
	maxTypeLength        = 253
)

// ValidateApplication returns what is wrong with the new Application, and
// whether it may follow old.
func ValidateApplication(obj, old *v1alpha1.Application) field.ErrorList {
	spec := &obj.Spec
	errs := validateMetadata(obj.ObjectMeta, namespaced)
	switch typ := specPath.Child("type"); {
	case spec.Type == "":
		errs = append(errs, field.Required(typ, "the type of the application, e.g. WordPress"))
	case len(spec.Type) > maxTypeLength:
		errs = append(errs, field.TooLong(typ, "", maxTypeLength))
	}
	selector := specPath.Child("selector")
	if spec.Selector == nil {
		errs = append(errs, field.Required(selector, "the labels that the components carry"))
	}
	errs = append(errs, validateSelector(spec.Selector, selector)...)
	if old != nil && !apiequality.Semantic.DeepEqual(spec.Selector, old.Spec.Selector) {
		errs = append(errs, immutable(selector, field.OmitValueType{},
			"a change would orphan components; create a new Application instead"))
	}
	errs = append(errs, validateComponents(spec.Components, specPath.Child("components"))...)
	errs = append(errs, validateDependencies(obj, specPath.Child("dependencies"))...)
	errs = append(errs, validateHealthCheck(obj, specPath.Child("healthCheck"))...)
	errs = append(errs, validateHealthExpressions(spec.HealthExpressions, specPath.Child("healthExpressions"))...)
	return append(errs, validateEnum(spec.Ownership, specPath.Child("ownership"),
		v1alpha1.OwnershipOwn, v1alpha1.OwnershipObserve)...)
}

// ApplicationWarnings returns what is allowed in an Application and unwise.
func ApplicationWarnings(obj *v1alpha1.Application) []string {
	var warnings []string
	spec := &obj.Spec
	if s := spec.Selector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		warnings = append(warnings, specPath.Child("selector").String()+" is empty: it matches every object")
	}
	for _, link := range []struct{ name, value string }{
		{"url", spec.AboutURL}, {"license", spec.LicenseURL}, {"dashboard", spec.DashboardURL},
	} {
		if len(validateWebURL(link.value, specPath.Child(link.name))) > 0 {
			warnings = append(warnings, specPath.Child(link.name).String()+" is not an http or https URL: user interfaces will not link to it")
		}
	}
	return warnings
}

// ComponentKinds returns the distinct kinds that the Application lists, in the order of the list.
func ComponentKinds(obj *v1alpha1.Application) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, c := range obj.Spec.Components {
		gk := schema.GroupKind{Group: c.Group, Kind: c.Kind}
		if !slices.Contains(kinds, gk) {
			kinds = append(kinds, gk)
		}
	}
	return kinds
}

func validateComponents(components []v1alpha1.ApplicationComponent, fld *field.Path) field.ErrorList {
	errs := atMost(len(components), maxComponents, fld)
	errs = append(errs, duplicates(components, fld, func(c v1alpha1.ApplicationComponent) string {
		return schema.GroupKind{Group: c.Group, Kind: c.Kind}.String() + "/" + c.Name
	})...)
	for i, c := range components {
		at := fld.Index(i)
		errs = append(errs, validateGroupKind(c.Group, c.Kind, at)...)
		// Each kind has rules of its own for names (RBAC allows colons); these hold for all.
		errs = append(errs, formatErrors(c.Name, at.Child("name"), content.IsPathSegmentName)...)
	}
	return errs
}

func validateGroupKind(group, kind string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if group != "" {
		errs = append(errs, formatErrors(group, path.Child("group"), validation.IsDNS1123Subdomain)...)
	}
	if kind == "" {
		return append(errs, field.Required(path.Child("kind"), ""))
	}
	for _, r := range kind {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return append(errs, field.Invalid(path.Child("kind"), kind, "must be the name of a kind, such as StatefulSet"))
		}
	}
	return errs
}

func validateDependencies(obj *v1alpha1.Application, path *field.Path) field.ErrorList {
	dependencies := obj.Spec.Dependencies
	errs := atMost(len(dependencies), maxDependencies, path)
	errs = append(errs, duplicates(dependencies, path, func(s string) string { return s })...)
	for i, name := range dependencies {
		errs = append(errs, validateObjectName(name, path.Index(i))...)
		if name != "" && name == obj.Name {
			errs = append(errs, field.Invalid(path.Index(i), name, "an Application cannot depend on itself"))
		}
	}
	return errs
}

func validateHealthExpressions(expressions []v1alpha1.HealthExpression, path *field.Path) field.ErrorList {
	errs := atMost(len(expressions), maxHealthExpressions, path)
	errs = append(errs, duplicates(expressions, path, func(e v1alpha1.HealthExpression) string {
		return schema.GroupKind{Group: e.Group, Kind: e.Kind}.String()
	})...)
	for i, e := range expressions {
		at := path.Index(i)
		errs = append(errs, validateGroupKind(e.Group, e.Kind, at)...)
		if e.Current == "" {
			errs = append(errs, field.Required(at.Child("current"), ""))
		}
		errs = append(errs, validateCEL(e.Current, at.Child("current"))...)
		errs = append(errs, validateCEL(e.Failed, at.Child("failed"))...)
	}
	return errs
}

// validateCEL compiles an expression over metadata, spec and status: data is out of reach.
func validateCEL(expression string, path *field.Path) field.ErrorList {
	if expression == "" {
		return nil
	}
	_, err := cel.NewExpression(expression, cel.WithCompile(),
		cel.WithStructVariables("metadata", "spec", "status"), cel.WithOutputType(celgo.BoolType))
	if err != nil {
		return field.ErrorList{field.Invalid(path, expression, err.Error())}
	}
	return nil
}
