package validation

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// The limits of a definition, as in its schema.
const (
	maxVersions  = 100
	maxLogoBytes = 64 << 10
)

// ValidateApplicationDefinition returns what is wrong with the new ApplicationDefinition, and whether it may follow old.
func ValidateApplicationDefinition(obj, old *v1alpha1.ApplicationDefinition) field.ErrorList {
	spec := &obj.Spec
	errs := validateMetadata(obj.ObjectMeta, clusterScoped)
	errs = append(errs, validateWebURL(spec.DocumentationURL, specPath.Child("documentationURL"))...)
	errs = append(errs, validateWebURL(spec.SourceURL, specPath.Child("sourceURL"))...)
	errs = append(errs, validateLogo(spec.Logo, specPath.Child("logo"))...)
	errs = append(errs, validateEnum(spec.Method, specPath.Child("method"), v1alpha1.MethodHelm, v1alpha1.MethodKustomize)...)
	errs = append(errs, validateValues(spec.DefaultValues, specPath.Child("defaultValues"))...)
	errs = append(errs, validateTargetNamespace(spec.DefaultNamespace, specPath.Child("defaultNamespace"))...)
	errs = append(errs, validateDeployOptions(spec.DefaultDeployOptions, specPath.Child("defaultDeployOptions"))...)
	errs = append(errs, validateAccount(spec.ServiceAccountName)...)
	errs = append(errs, validateSelector(spec.ClusterSelector, specPath.Child("clusterSelector"))...)
	errs = append(errs, validateRequires(obj, specPath.Child("requires"))...)
	errs = append(errs, validateVersions(obj, specPath.Child("versions"))...)
	if spec.DefaultVersion != "" && !offers(obj, spec.DefaultVersion) {
		errs = append(errs, field.Invalid(specPath.Child("defaultVersion"), spec.DefaultVersion, "must be one of versions"))
	}
	errs = append(errs, validateProvided(obj)...)
	if old != nil && old.GetMethod() != obj.GetMethod() {
		errs = append(errs, immutable(specPath.Child("method"), spec.Method, "create a new definition instead"))
	}
	return errs
}

// ApplicationDefinitionWarnings returns what is allowed in an ApplicationDefinition and unwise.
func ApplicationDefinitionWarnings(obj *v1alpha1.ApplicationDefinition) []string {
	var warnings []string
	if v := obj.GetVersion(obj.Spec.DefaultVersion); v != nil && v.Deprecated {
		warnings = append(warnings, specPath.Child("defaultVersion").String()+" "+strconv.Quote(v.Version)+" is deprecated")
	}
	for i := range obj.Spec.Versions {
		t := obj.Spec.Versions[i].Template
		if t == nil {
			continue
		}
		path := specPath.Child("versions").Index(i).Child("template", "source")
		if h := t.Source.Helm; h != nil {
			if h.InsecureSkipTLS {
				warnings = append(warnings, path.Child("helm", "insecureSkipTLS").String()+" trusts any server: prefer caSecretRef")
			}
			if h.PlainHTTP || strings.HasPrefix(h.URL, "http://") {
				warnings = append(warnings, path.Child("helm", "url").String()+" is not encrypted: anyone on the network path can change what is installed")
			}
		}
		if g := t.Source.Git; g != nil {
			warnings = append(warnings, gitReferenceWarnings(g.Ref, path.Child("git", "ref"))...)
		}
	}
	return warnings
}

func validateVersions(obj *v1alpha1.ApplicationDefinition, path *field.Path) field.ErrorList {
	versions := obj.Spec.Versions
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "at least one version must be offered")}
	}
	errs := atMost(len(versions), maxVersions, path)
	errs = append(errs, validateUniqueVersions(versions, path)...)
	for i := range versions {
		v, at := &versions[i], path.Index(i)
		errs = append(errs, validateVersionName(v.Version, at.Child("version"))...)
		errs = append(errs, validateBeforeUpgrade(v.BeforeUpgrade, at.Child("beforeUpgrade"))...)
		switch {
		case v.Template != nil:
			errs = append(errs, validateTemplate(v.Template, obj.GetMethod(), at.Child("template"))...)
		case !obj.IsCopy():
			errs = append(errs, field.Required(at.Child("template"), "only copies that Waybill creates may omit it"))
		}
	}
	return errs
}

// validateVersionName wants names that stay one word in lists and on command lines.
func validateVersionName(version string, path *field.Path) field.ErrorList {
	if version == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if version == "*" || strings.ContainsAny(version, ", \t\r\n") {
		return field.ErrorList{field.Invalid(path, version, "must not contain commas or spaces, and must not be `*`")}
	}
	return nil
}

// validateUniqueVersions refuses versions that are the same text, or equal as semantic versions:
// `v1.0.0` is `1.0.0`.
func validateUniqueVersions(versions []v1alpha1.ApplicationVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[string]struct{}, len(versions))
	for i := range versions {
		key := canonicalVersion(versions[i].Version)
		if _, ok := seen[key]; ok {
			errs = append(errs, field.Duplicate(path.Index(i).Child("version"), versions[i].Version))
		}
		seen[key] = struct{}{}
	}
	return errs
}

// canonicalVersion is the same for versions that are equal as semantic versions, whose build
// metadata does not count.
func canonicalVersion(version string) string {
	v, err := semver.NewVersion(version)
	if err != nil {
		return version
	}
	plain, err := v.SetMetadata("")
	if err != nil {
		return v.String()
	}
	return plain.String()
}

func validateTemplate(t *v1alpha1.ApplicationTemplate, method v1alpha1.Method, path *field.Path) field.ErrorList {
	source := path.Child("source")
	errs := validateValues(t.Values, path.Child("values"))
	if (t.Source.Helm == nil) == (t.Source.Git == nil) {
		errs = append(errs, field.Invalid(source, field.OmitValueType{}, "exactly one of helm and git must be set"))
	}
	if h := t.Source.Helm; h != nil {
		if method != v1alpha1.MethodHelm {
			errs = append(errs, field.Invalid(source.Child("helm"), field.OmitValueType{}, "a helm source requires method helm"))
		}
		errs = append(errs, validateHelmSource(h, source.Child("helm"))...)
	}
	if g := t.Source.Git; g != nil {
		errs = append(errs, validateGitSource(g, source.Child("git"))...)
	}
	return errs
}

func validateLogo(l *v1alpha1.Logo, path *field.Path) field.ErrorList {
	if l == nil {
		return nil
	}
	format, data := path.Child("format"), path.Child("data")
	if len(l.Data) > maxLogoBytes {
		return field.ErrorList{field.TooLong(data, "", maxLogoBytes)}
	}
	switch l.Format {
	case "":
		return field.ErrorList{field.Required(format, "")}
	case "png":
		if !bytes.HasPrefix(l.Data, []byte("\x89PNG\r\n\x1a\n")) {
			return field.ErrorList{field.Invalid(data, field.OmitValueType{}, "is not a PNG image")}
		}
	case "svg+xml":
		if !bytes.Contains(l.Data, []byte("<svg")) {
			return field.ErrorList{field.Invalid(data, field.OmitValueType{}, "is not an SVG image")}
		}
	default:
		return field.ErrorList{field.NotSupported(format, l.Format, []string{"svg+xml", "png"})}
	}
	return nil
}

// RemovedVersions returns the versions that old offers and obj does not, sorted. A nil obj
// stands for a definition that is being deleted.
func RemovedVersions(obj, old *v1alpha1.ApplicationDefinition) []string {
	var removed []string
	for i := range old.Spec.Versions {
		version := old.Spec.Versions[i].Version
		if obj == nil || !offers(obj, version) {
			removed = append(removed, version)
		}
	}
	slices.Sort(removed)
	return removed
}

// offers reports whether a definition has a version of exactly that name.
func offers(obj *v1alpha1.ApplicationDefinition, version string) bool {
	return slices.ContainsFunc(obj.Spec.Versions, func(v v1alpha1.ApplicationVersion) bool { return v.Version == version })
}

// ForceRemoved reports whether the definition allows to remove this version although installations
// use it; an empty one is only meant by "*".
func ForceRemoved(obj *v1alpha1.ApplicationDefinition, version string) bool {
	for item := range strings.SplitSeq(obj.Annotations[v1alpha1.ForceRemoveAnnotation], ",") {
		if item = strings.TrimSpace(item); item == "*" || item != "" && v1alpha1.SameVersion(item, version) {
			return true
		}
	}
	return false
}
