package validation

import (
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// ProvidedVersion returns the version that clusters are given of a definition with default or enforced:
// its defaultVersion, or else the newest one that is not deprecated. Releases come before prereleases, and
// semantic versions before others, which count in the order of the spec. Empty if there is none.
func ProvidedVersion(def *v1alpha1.ApplicationDefinition) string {
	if def.Spec.DefaultVersion != "" {
		return def.Spec.DefaultVersion
	}
	var offered []v1alpha1.ApplicationVersion
	for _, v := range def.Spec.Versions {
		if !v.Deprecated {
			offered = append(offered, v)
		}
	}
	if len(offered) == 0 {
		return ""
	}
	return slices.MinFunc(offered, func(a, b v1alpha1.ApplicationVersion) int { return newerFirst(a.Version, b.Version) }).Version
}

func newerFirst(a, b string) int {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	if rank := rankOf(x, errX) - rankOf(y, errY); rank != 0 || errX != nil {
		return rank
	}
	return y.Compare(x)
}

// rankOf puts releases before prereleases, and those before what is no semantic version.
func rankOf(v *semver.Version, err error) int {
	switch {
	case err != nil:
		return 2
	case v.Prerelease() != "":
		return 1
	default:
		return 0
	}
}

// validateProvided returns why a definition cannot be given to clusters without a user's request.
func validateProvided(obj *v1alpha1.ApplicationDefinition) field.ErrorList {
	if !obj.IsProvided() {
		return nil
	}
	path := specPath.Child("default")
	if obj.Spec.Enforced {
		path = specPath.Child("enforced")
	}
	var errs field.ErrorList
	if obj.Spec.Default && obj.Spec.Enforced {
		errs = append(errs, field.Forbidden(path, "at most one of default and enforced may be set"))
	}
	if len(obj.Name) > maxReleaseName {
		errs = append(errs, field.Forbidden(path, "its installations have the name of the definition, which must have at most 53 characters for that"))
	}
	if obj.Spec.DefaultNamespace == nil && len(validateDNSLabel(obj.Name, metadataPath.Child("name"))) > 0 {
		errs = append(errs, field.Required(specPath.Child("defaultNamespace"), "the name of the definition cannot be that of a namespace"))
	}
	if len(obj.Spec.Versions) > 0 && ProvidedVersion(obj) == "" {
		errs = append(errs, field.Required(specPath.Child("defaultVersion"), "every version is deprecated: name the one that clusters are given"))
	}
	return errs
}
