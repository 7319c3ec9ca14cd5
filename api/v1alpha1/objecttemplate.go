package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ObjectTemplate is the manifest of one object of any kind, also of kinds that only the user
// cluster knows. Beside what identifies the object it is opaque (W17, W44).
//
// The fields say what the manifest says of itself; Raw is all of it. A template is read from
// JSON, or made with NewObjectTemplate, so that the two agree.
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

// ObjectTemplateMetadata is what identifies a templated object within its kind.
// +kubebuilder:pruning:PreserveUnknownFields
type ObjectTemplateMetadata struct {
	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the object in the user cluster. Default: `default`, for namespaced kinds
	// (W27, C12).
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// identity has the fields of an ObjectTemplate and not its methods.
type identity struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Metadata   ObjectTemplateMetadata `json:"metadata"`
}

// NewObjectTemplate returns the template that makes obj.
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
	if err := json.Unmarshal(data, &id); err != nil {
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

// Object returns the templated object, new with every call. It fails where the manifest is no
// object with an apiVersion and a kind.
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

// GroupVersionKind is the kind of the templated object; the group and version are empty where
// apiVersion is no group and version.
func (t ObjectTemplate) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
}

// SameObject says whether both are templates of one object: the four fields that identify it
// are equal (W56).
func (t ObjectTemplate) SameObject(o ObjectTemplate) bool {
	return t.APIVersion == o.APIVersion && t.Kind == o.Kind && t.Metadata == o.Metadata
}
