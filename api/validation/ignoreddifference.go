package validation

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

const (
	maxIgnoredDifferences = 50
	maxPointers           = 50
	maxPointer            = 512
)

// pointer is the form of a JSON pointer that names something within a document.
var pointer = regexp.MustCompile(`^(/([^/~]|~[01])*)+$`)

// identities are what says which object one is, and what holds the marks of Waybill.
var identities = []string{
	"/", "/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace", "/metadata/labels", "/metadata/annotations",
}

// validateIgnoredDifferences checks spec.ignoreDifferences.
func validateIgnoredDifferences(list []v1alpha1.IgnoredDifference) field.ErrorList {
	path := specPath.Child("ignoreDifferences")
	errs := atMost(len(list), maxIgnoredDifferences, path)
	for i, ignored := range list {
		at := path.Index(i)
		errs = append(errs, validateDifferenceTarget(ignored.Target, at.Child("target"))...)
		pointers := at.Child("jsonPointers")
		if len(ignored.JSONPointers) == 0 {
			errs = append(errs, field.Required(pointers, "name the fields to ignore"))
		}
		errs = append(errs, atMost(len(ignored.JSONPointers), maxPointers, pointers)...)
		for j, text := range ignored.JSONPointers {
			errs = append(errs, validatePointer(text, pointers.Index(j))...)
		}
	}
	return errs
}

func validatePointer(text string, path *field.Path) field.ErrorList {
	marks := "/" + strings.ReplaceAll(v1alpha1.Group+"/", "/", "~1")
	switch {
	case len(text) > maxPointer:
		return field.ErrorList{field.TooLong(path, "", maxPointer)}
	case !pointer.MatchString(text):
		return field.ErrorList{field.Invalid(path, text, "must be a JSON pointer of RFC 6901, such as /spec/replicas: in a key, ~ is written ~0 and / is written ~1")}
	case slices.Contains(identities, text):
		return field.ErrorList{field.Invalid(path, text, "the identity of an object, and all its labels or annotations together, cannot be ignored")}
	case strings.HasPrefix(text, "/metadata/labels"+marks), strings.HasPrefix(text, "/metadata/annotations"+marks):
		return field.ErrorList{field.Invalid(path, text, "the marks of Waybill cannot be ignored")}
	}
	return nil
}

func validateDifferenceTarget(target *v1alpha1.DifferenceTarget, path *field.Path) field.ErrorList {
	if target == nil {
		return nil
	}
	const maxPattern, maxSelector = 253, 1024
	var errs field.ErrorList
	for _, part := range []struct{ name, pattern string }{
		{"group", target.Group}, {"version", target.Version}, {"kind", target.Kind}, {"namespace", target.Namespace}, {"name", target.Name},
	} {
		if len(part.pattern) > maxPattern {
			errs = append(errs, field.TooLong(path.Child(part.name), "", maxPattern))
		} else if _, err := regexp.Compile(part.pattern); err != nil {
			errs = append(errs, field.Invalid(path.Child(part.name), part.pattern, "must be a regular expression: "+err.Error()))
		}
	}
	for _, part := range []struct{ name, selector string }{
		{"labelSelector", target.LabelSelector}, {"annotationSelector", target.AnnotationSelector},
	} {
		if len(part.selector) > maxSelector {
			errs = append(errs, field.TooLong(path.Child(part.name), "", maxSelector))
		} else if _, err := labels.Parse(part.selector); err != nil {
			errs = append(errs, field.Invalid(path.Child(part.name), part.selector, "must be a selector, such as tier=web: "+err.Error()))
		}
	}
	return errs
}
