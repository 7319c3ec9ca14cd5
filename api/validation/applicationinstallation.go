package validation

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
)

// The limits of an installation, as in its schema.
const (
	maxReleaseName      = 53
	maxValuesFrom       = 20
	maxValuesBlock      = 512 << 10
	maxHistoryLimit     = 100
	maxNamespaceEntries = 64
)

const recreate = "delete and recreate the installation"

// ValidateApplicationInstallation returns what is wrong with the new ApplicationInstallation, and whether it may follow old. A missing version is no error here: it may still
// be filled in from the definition.
func ValidateApplicationInstallation(obj, old *v1alpha1.ApplicationInstallation) field.ErrorList {
	spec := &obj.Spec
	errs := validateMetadata(obj.ObjectMeta, namespaced)
	if len(obj.Name) > maxReleaseName {
		errs = append(errs, field.TooLong(metadataPath.Child("name"), obj.Name, maxReleaseName))
	}
	errs = append(errs, validateObjectName(spec.ApplicationRef.Name, specPath.Child("applicationRef", "name"))...)
	errs = append(errs, validateTargetNamespace(spec.Namespace, specPath.Child("namespace"))...)
	errs = append(errs, validateInstallationValues(spec)...)
	errs = append(errs, validateInterval(spec.ReconciliationInterval, specPath.Child("reconciliationInterval"))...)
	errs = append(errs, validateDeployOptions(spec.DeployOptions, specPath.Child("deployOptions"))...)
	errs = append(errs, validateAccount(spec.ServiceAccountName)...)
	errs = append(errs, validateDependsOn(obj, specPath.Child("dependsOn"))...)
	errs = append(errs, validateBeforeUpgrade(spec.BeforeUpgrade, specPath.Child("beforeUpgrade"))...)
	errs = append(errs, validateIgnoredDifferences(spec.IgnoreDifferences)...)
	if old == nil {
		return errs
	}
	if spec.ApplicationRef.Name != old.Spec.ApplicationRef.Name {
		errs = append(errs, immutable(specPath.Child("applicationRef", "name"), spec.ApplicationRef.Name, recreate))
	}
	return append(errs, validateSameTarget(obj, old)...)
}

// validateSameTarget returns an error if the release of old would be left behind. A namespace
// that was left out may be filled in, but once the installation was resolved only with that one.
func validateSameTarget(obj, old *v1alpha1.ApplicationInstallation) field.ErrorList {
	path := specPath.Child("namespace")
	is, was, resolved := obj.Spec.Namespace, old.Spec.Namespace, old.Status.Application
	switch {
	case was != nil && (is == nil || is.Name != was.Name):
		return field.ErrorList{immutable(path, obj.GetTarget(nil).Name, recreate)}
	case was == nil && is != nil && resolved != nil && is.Name != resolved.Namespace:
		return field.ErrorList{immutable(path.Child("name"), is.Name, "it was resolved to "+strconv.Quote(resolved.Namespace)+"; "+recreate)}
	}
	return nil
}

// ValidateInstallationVersion returns what is wrong with the version that an installation names,
// given its definition: it must name one, after defaulting, and the definition must offer it.
func ValidateInstallationVersion(obj *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) field.ErrorList {
	path, version := specPath.Child("applicationRef", "version"), obj.Spec.ApplicationRef.Version
	if version == "" {
		return field.ErrorList{field.Required(path, "definition "+strconv.Quote(def.Name)+" has no defaultVersion")}
	}
	if def.GetVersion(version) != nil {
		return nil
	}
	offered := make([]string, len(def.Spec.Versions))
	for i := range def.Spec.Versions {
		offered[i] = def.Spec.Versions[i].Version
	}
	return field.ErrorList{field.NotSupported(path, version, offered)}
}

// ValidateInstallationAccount returns what is wrong with the ServiceAccount that an installation acts as:
// it must act as one if its definition requires that. fallback is what stands in for one that neither
// names.
func ValidateInstallationAccount(obj *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition, fallback string) field.ErrorList {
	if !def.Spec.RequireServiceAccount || obj.GetServiceAccountName(def, fallback) != "" {
		return nil
	}
	return field.ErrorList{field.Required(specPath.Child("serviceAccountName"),
		"definition "+strconv.Quote(def.Name)+" requires one: name a ServiceAccount of the installation's namespace that may write what is installed")}
}

// ValidateInstallationDeletionPolicy returns what is wrong with the deletionPolicy of an installation: its
// definition may forbid Orphan. One that old has already stays valid, and is not heeded: see
// OrphanForbiddenWarning.
func ValidateInstallationDeletionPolicy(obj, old *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) field.ErrorList {
	had := old != nil && old.Spec.DeletionPolicy == v1alpha1.InstallationOrphan
	if obj.Spec.DeletionPolicy != v1alpha1.InstallationOrphan || had || !def.ForbidsOrphan() {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath.Child("deletionPolicy"),
		forbidsOrphan(def)+": leave the field out, and what is installed is uninstalled with the installation")}
}

// OrphanForbiddenWarning says that deletionPolicy Orphan of an installation is not heeded, because its
// definition forbids it; empty if it is, or is not set.
func OrphanForbiddenWarning(obj *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) string {
	if obj.Spec.DeletionPolicy != v1alpha1.InstallationOrphan || !def.ForbidsOrphan() {
		return ""
	}
	return specPath.Child("deletionPolicy").String() + ": " + forbidsOrphan(def) + ": what is installed is uninstalled with the installation"
}

func forbidsOrphan(def *v1alpha1.ApplicationDefinition) string {
	why := "spec.forbidOrphan"
	if !def.Spec.ForbidOrphan {
		why = "spec.enforced"
	}
	return "ApplicationDefinition " + strconv.Quote(def.Name) + " forbids Orphan (" + why + ")"
}

// Withdrawn reports whether an installation is to be uninstalled because what it installs was removed
// by force: its definition is being deleted, or does not offer the installed version any more. A
// version that was never installed may still come.
func Withdrawn(obj *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) bool {
	version, installed := obj.GetVersion(def), obj.Status.Application
	removed := def.GetVersion(version) == nil && installed != nil && v1alpha1.SameVersion(installed.Version, version)
	return (removed || !def.DeletionTimestamp.IsZero()) && ForceRemoved(def, version)
}

// OfferSelector selects the clusters that a definition is offered to, by their labels. The error
// says what is wrong with its clusterSelector.
func OfferSelector(def *v1alpha1.ApplicationDefinition) (labels.Selector, error) {
	if def.Spec.ClusterSelector == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(def.Spec.ClusterSelector)
	if err != nil {
		return nil, fmt.Errorf("clusterSelector of ApplicationDefinition %q: %w", def.Name, err)
	}
	return selector, nil
}

// OfferedTo reports whether a definition is offered to a cluster, by the labels of its KubernetesCluster. One
// whose clusterSelector is invalid is offered to none.
func OfferedTo(def *v1alpha1.ApplicationDefinition, kc *v1alpha1.KubernetesCluster) bool {
	selector, err := OfferSelector(def)
	return err == nil && selector.Matches(labels.Set(kc.Labels))
}

// ApplicationInstallationWarnings returns what is allowed in an ApplicationInstallation and
// unwise. def is its definition, nil where it is not known.
func ApplicationInstallationWarnings(obj, old *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) []string {
	if def == nil {
		return nil
	}
	ref := obj.Spec.ApplicationRef
	newUse := old == nil || old.Spec.ApplicationRef.Version != ref.Version
	if v := def.GetVersion(ref.Version); newUse && v != nil && v.Deprecated {
		return []string{"version " + strconv.Quote(ref.Version) + " of " + ref.Name + " is deprecated: choose another one"}
	}
	return nil
}

func validateInstallationValues(spec *v1alpha1.ApplicationInstallationSpec) field.ErrorList {
	errs := validateValues(spec.Values, specPath.Child("values"))
	block := specPath.Child("valuesBlock")
	if spec.Values != nil && spec.ValuesBlock != "" {
		errs = append(errs, field.Forbidden(block, "at most one of values and valuesBlock may be set"))
	}
	errs = append(errs, validateValuesBlock(spec.ValuesBlock, block)...)

	from := specPath.Child("valuesFrom")
	errs = append(errs, atMost(len(spec.ValuesFrom), maxValuesFrom, from)...)
	for i, ref := range spec.ValuesFrom {
		at := from.Index(i)
		if ref.Kind == "" {
			errs = append(errs, field.Required(at.Child("kind"), ""))
		}
		errs = append(errs, validateEnum(ref.Kind, at.Child("kind"), "ConfigMap", "Secret")...)
		errs = append(errs, validateObjectName(ref.Name, at.Child("name"))...)
		errs = append(errs, validateDataKey(ref.Key, at.Child("key"))...)
	}
	return errs
}

// validateValues wants an object; the value itself is never repeated, it may be secret.
func validateValues(v *apiextensionsv1.JSON, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	if err := expansion.JSON(v.Raw, expansion.MaxValues); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(v.Raw, &values); err != nil || values == nil {
		return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "must be an object")}
	}
	return nil
}

// validateValuesBlock wants one YAML document that holds a mapping, without duplicate keys.
func validateValuesBlock(block string, path *field.Path) field.ErrorList {
	if block == "" {
		return nil
	}
	if len(block) > maxValuesBlock {
		return field.ErrorList{field.TooLong(path, "", maxValuesBlock)}
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(block)))
	first, err := documents.Read()
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	if _, err := documents.Read(); !errors.Is(err, io.EOF) {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be one document: what follows `---` would be lost")}
	}
	if err := expansion.Text(first, expansion.Limits{}); err != nil {
		if errors.Is(err, expansion.ErrSyntax) {
			// Say where, by the parser of all other blocks, which writes out no alias for a type without fields.
			err = cmp.Or(yamlv2.Unmarshal(first, &struct{}{}), err)
		}
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	if expansion.Nodes(first) > expansion.MaxValues {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must have at most %d values", expansion.MaxValues))}
	}
	raw, err := yaml.YAMLToJSONStrict(first)
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	if trimmed := bytes.TrimSpace(raw); !bytes.HasPrefix(trimmed, []byte("{")) && string(trimmed) != "null" {
		return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "must be a mapping of names to values")}
	}
	return nil
}

func validateTargetNamespace(ns *v1alpha1.TargetNamespace, path *field.Path) field.ErrorList {
	if ns == nil {
		return nil
	}
	var errs field.ErrorList
	if ns.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, validateDNSLabel(ns.Name, path.Child("name"))...)
	}
	errs = append(errs, atMost(len(ns.Labels), maxNamespaceEntries, path.Child("labels"))...)
	errs = append(errs, metav1validation.ValidateLabels(ns.Labels, path.Child("labels"))...)
	errs = append(errs, atMost(len(ns.Annotations), maxNamespaceEntries, path.Child("annotations"))...)
	return append(errs, apivalidation.ValidateAnnotations(ns.Annotations, path.Child("annotations"))...)
}

func validateDeployOptions(o *v1alpha1.DeployOptions, path *field.Path) field.ErrorList {
	if o == nil || o.Helm == nil {
		return nil
	}
	h, at := o.Helm, path.Child("helm")
	errs := validateInterval(h.Timeout, at.Child("timeout"))
	if h.Atomic && !h.Wait {
		errs = append(errs, field.Invalid(at.Child("atomic"), true, "atomic requires wait"))
	}
	errs = append(errs, validateEnum(h.CRDs, at.Child("crds"),
		v1alpha1.CRDCreateReplace, v1alpha1.CRDCreate, v1alpha1.CRDSkip)...)
	errs = append(errs, validateEnum(h.DriftDetection, at.Child("driftDetection"),
		v1alpha1.DriftEnabled, v1alpha1.DriftWarn, v1alpha1.DriftDisabled)...)
	if h.HistoryLimit < 0 || h.HistoryLimit > maxHistoryLimit {
		errs = append(errs, field.Invalid(at.Child("historyLimit"), h.HistoryLimit, "must be between 1 and 100"))
	}
	return errs
}
