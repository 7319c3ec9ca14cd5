package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// ObjectTemplate is the manifest of one object of any kind, including kinds that only the user
// cluster knows. Apart from the fields that identify the object it is opaque.
//
// The fields are copied from the manifest; Raw is all of it. Templates are decoded from JSON or
// created with NewObjectTemplate, so that the two agree.
// +structType=atomic
// +kubebuilder:pruning:PreserveUnknownFields
type ObjectTemplate struct {
	// APIVersion of the object, e.g. `apps/v1`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// Kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Metadata of the object.
	// +required
	Metadata ObjectTemplateMetadata `json:"metadata"`

	// Raw is the whole manifest as JSON.
	Raw []byte `json:"-"`
}

// ObjectTemplateMetadata identifies a templated object within its kind.
// +kubebuilder:pruning:PreserveUnknownFields
type ObjectTemplateMetadata struct {
	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the object in the user cluster. Default: `default`, for namespaced kinds.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// identity has the fields of an ObjectTemplate without its methods.
type identity struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Metadata   ObjectTemplateMetadata `json:"metadata"`
}

// NewObjectTemplate returns the template of obj.
func NewObjectTemplate(obj *unstructured.Unstructured) (ObjectTemplate, error) {
	raw, err := obj.MarshalJSON()
	if err != nil {
		return ObjectTemplate{}, fmt.Errorf("encode template: %w", err)
	}
	var t ObjectTemplate
	return t, t.UnmarshalJSON(bytes.TrimSpace(raw))
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *ObjectTemplate) UnmarshalJSON(data []byte) error {
	var id identity
	// As API servers do; encoding/json takes a field Kind for kind, too.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &id); err != nil {
		return err
	}
	*t = ObjectTemplate{APIVersion: id.APIVersion, Kind: id.Kind, Metadata: id.Metadata, Raw: append([]byte(nil), data...)}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (t ObjectTemplate) MarshalJSON() ([]byte, error) {
	if t.Raw != nil {
		return t.Raw, nil
	}
	return json.Marshal(identity{APIVersion: t.APIVersion, Kind: t.Kind, Metadata: t.Metadata})
}

// Object returns a new copy of the templated object with every call. It fails if the manifest is
// not an object with an apiVersion and a kind.
func (t ObjectTemplate) Object() (*unstructured.Unstructured, error) {
	data, err := t.MarshalJSON()
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("decode template: %w", err)
	}
	return obj, nil
}

// GroupVersionKind returns the kind of the templated object. Group and version are empty if
// apiVersion cannot be parsed.
func (t ObjectTemplate) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
}

// SameObject reports whether both are templates of the same object: the four fields that identify
// it are equal.
func (t ObjectTemplate) SameObject(o ObjectTemplate) bool {
	return t.APIVersion == o.APIVersion && t.Kind == o.Kind && t.Metadata == o.Metadata
}
