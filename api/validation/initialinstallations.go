package validation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
)

// The limits of a list of installations: what a ConfigMap can hold, and what a status can name.
const (
	maxInitialBytes         = 1 << 20
	maxInitialInstallations = 2000
)

// InitialInstallation is one entry of the installations that a KubernetesCluster asks for.
type InitialInstallation struct {
	// Object is what is to be created; nil if the entry cannot be decoded.
	Object *v1alpha1.ApplicationInstallation
	// Raw is the entry as it was written, as JSON.
	Raw json.RawMessage
	// Name is the namespace and the name of the installation, or else the place in the list.
	Name string
	// Errors are what is wrong with the entry.
	Errors field.ErrorList
}

// initialEntry is the part of an ApplicationInstallation that an entry may have.
type initialEntry struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec v1alpha1.ApplicationInstallationSpec `json:"spec"`
}

// InitialInstallations decodes a list of installations, which is JSON or YAML, and checks each entry. The
// error says why there is no list at all; it does not repeat values, which may be secret.
func InitialInstallations(text string, path *field.Path) ([]InitialInstallation, error) {
	raw, err := initialEntries(text)
	if err != nil {
		return nil, err
	}
	entries, seen := make([]InitialInstallation, len(raw)), map[string]bool{}
	for i := range raw {
		entries[i] = newInitialInstallation(raw[i], path.Index(i))
		if name := nameOf(raw[i]); name != "" {
			entries[i].Name = name
		} else {
			entries[i].Name = fmt.Sprintf("entry %d", i)
		}
		if seen[entries[i].Name] {
			entries[i].Errors = append(entries[i].Errors, field.Duplicate(path.Index(i).Child("metadata", "name"), entries[i].Name))
		}
		seen[entries[i].Name] = true
	}
	return entries, nil
}

// initialEntries returns the entries of a list, whose size is checked before it is decoded.
func initialEntries(text string) ([]json.RawMessage, error) {
	content := []byte(text)
	if len(content) > maxInitialBytes {
		return nil, fmt.Errorf("must have at most %d bytes", maxInitialBytes)
	}
	if err := expansion.Text(content, expansion.Limits{}); err != nil {
		return nil, err
	}
	if expansion.Nodes(content) > expansion.MaxValues {
		return nil, fmt.Errorf("must have at most %d values", expansion.MaxValues)
	}
	list, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, errors.New("must be a list of ApplicationInstallations, as JSON or YAML, without duplicate keys")
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(list, &raw); err != nil {
		return nil, errors.New("must be a list of ApplicationInstallations")
	}
	if len(raw) > maxInitialInstallations {
		return nil, fmt.Errorf("must have at most %d entries", maxInitialInstallations)
	}
	return raw, nil
}

func newInitialInstallation(raw json.RawMessage, path *field.Path) InitialInstallation {
	made := InitialInstallation{Raw: raw}
	var entry initialEntry
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&entry); err != nil {
		made.Errors = field.ErrorList{field.Invalid(path, field.OmitValueType{}, decodeProblem(err))}
		return made
	}
	made.Object = &v1alpha1.ApplicationInstallation{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationInstallationKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: entry.Metadata.Name, Namespace: entry.Metadata.Namespace,
			Labels: entry.Metadata.Labels, Annotations: entry.Metadata.Annotations,
		},
		Spec: entry.Spec,
	}
	made.Errors = validateInitialEntry(&entry, made.Object, path)
	return made
}

// nameOf returns the namespace and the name in an entry, whatever else is wrong with it; empty if it has none.
func nameOf(raw json.RawMessage) string {
	var entry struct {
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &entry) != nil || entry.Metadata.Name == "" {
		return ""
	}
	return entry.Metadata.Namespace + "/" + entry.Metadata.Name
}

// decodeProblem says what is wrong with the shape of an entry.
func decodeProblem(err error) string {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return fmt.Sprintf("%s must not be a %s", mistyped.Field, mistyped.Value)
	}
	if text := strings.TrimPrefix(err.Error(), "json: "); strings.HasPrefix(text, "unknown field") {
		return text
	}
	return "must be an ApplicationInstallation with metadata (name, namespace, labels, annotations) and spec"
}

func validateInitialEntry(entry *initialEntry, obj *v1alpha1.ApplicationInstallation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if entry.APIVersion != "" && entry.APIVersion != v1alpha1.GroupVersion.String() {
		errs = append(errs, field.NotSupported(path.Child("apiVersion"), entry.APIVersion, []string{v1alpha1.GroupVersion.String()}))
	}
	if entry.Kind != "" && entry.Kind != v1alpha1.ApplicationInstallationKind {
		errs = append(errs, field.NotSupported(path.Child("kind"), entry.Kind, []string{v1alpha1.ApplicationInstallationKind}))
	}
	if obj.Namespace == "" {
		errs = append(errs, field.Required(path.Child("metadata", "namespace"), "the namespace of the installation in the cluster"))
	}
	for name, keys := range map[string]map[string]string{"labels": obj.Labels, "annotations": obj.Annotations} {
		for key := range keys {
			if strings.HasPrefix(key, v1alpha1.Group+"/") {
				errs = append(errs, field.Forbidden(path.Child("metadata", name).Key(key), "it is one of Waybill's own"))
			}
		}
	}
	for _, err := range ValidateApplicationInstallation(obj, nil) {
		err.Field = path.String() + "." + err.Field
		errs = append(errs, err)
	}
	return errs
}

// InitialInstallationsPath is where a KubernetesCluster holds the list itself.
func InitialInstallationsPath() *field.Path {
	return metadataPath.Child("annotations").Key(v1alpha1.InitialInstallationsAnnotation)
}

// AddedInitialInstallations returns the entries of the annotation that old, which may be nil, does not have: the
// others were checked when they were written. The error says why there is no list.
func AddedInitialInstallations(obj, old *v1alpha1.KubernetesCluster) ([]InitialInstallation, error) {
	text, before := obj.Annotations[v1alpha1.InitialInstallationsAnnotation], ""
	if old != nil {
		before = old.Annotations[v1alpha1.InitialInstallationsAnnotation]
	}
	if text == "" || text == before {
		return nil, nil
	}
	entries, err := InitialInstallations(text, InitialInstallationsPath())
	if err != nil || before == "" {
		return entries, err
	}
	known := map[string]bool{}
	if raw, err := initialEntries(before); err == nil {
		for _, entry := range raw {
			known[string(entry)] = true
		}
	}
	return slices.DeleteFunc(entries, func(e InitialInstallation) bool { return known[string(e.Raw)] }), nil
}

// validateInitialInstallations returns what is wrong with what a KubernetesCluster asks for.
func validateInitialInstallations(obj, old *v1alpha1.KubernetesCluster) field.ErrorList {
	var errs field.ErrorList
	path, from := InitialInstallationsPath(), specPath.Child("installationsFrom")
	text := obj.Annotations[v1alpha1.InitialInstallationsAnnotation]
	if ref := obj.Spec.InstallationsFrom; ref != nil {
		errs = append(errs, validateObjectName(ref.Name, from.Child("name"))...)
		errs = append(errs, validateDataKey(ref.Key, from.Child("key"))...)
		if obj.IsSeed() {
			errs = append(errs, field.Forbidden(from, "nothing is installed in a cluster of role Seed"))
		}
	}
	if text != "" && obj.IsSeed() {
		errs = append(errs, field.Forbidden(path, "nothing is installed in a cluster of role Seed"))
	}
	entries, err := AddedInitialInstallations(obj, old)
	if err != nil {
		return append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	for i := range entries {
		errs = append(errs, entries[i].Errors...)
	}
	return errs
}

// ValidateInitialReference returns what is wrong with the definition and the version that an entry asks
// for in a cluster with these labels. def is nil if the hub has none of that name.
func ValidateInitialReference(obj *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition, kc *v1alpha1.KubernetesCluster) error {
	ref := obj.Spec.ApplicationRef
	if def == nil {
		return fmt.Errorf("there is no ApplicationDefinition %q", ref.Name)
	}
	if !OfferedTo(def, kc) {
		return fmt.Errorf("ApplicationDefinition %q is not offered to the cluster: its clusterSelector does not match the labels", ref.Name)
	}
	version := obj.GetVersion(def)
	switch {
	case version == "":
		return fmt.Errorf("no version is named, and ApplicationDefinition %q has no defaultVersion", ref.Name)
	case def.GetVersion(version) == nil:
		return fmt.Errorf("ApplicationDefinition %q has no version %q", ref.Name, version)
	}
	return nil
}
