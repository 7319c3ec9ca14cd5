package convert

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// oldKind is the kind that is converted.
var oldKind = schema.GroupVersionKind{Group: "app.k8s.io", Version: "v1beta1", Kind: "Application"}

// oldApplication is an Application of app.k8s.io/v1beta1, limited to fields that could be carried
// over. All other fields are reported as unknown.
type oldApplication struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   oldSpec        `json:"spec,omitempty"`
	Status map[string]any `json:"status,omitempty"`
}

type oldSpec struct {
	ComponentKinds []oldComponentKind    `json:"componentKinds,omitempty"`
	Descriptor     oldDescriptor         `json:"descriptor,omitempty"`
	Selector       *metav1.LabelSelector `json:"selector,omitempty"`
	AddOwnerRef    bool                  `json:"addOwnerRef,omitempty"`
	Info           []oldInfo             `json:"info,omitempty"`
	AssemblyPhase  string                `json:"assemblyPhase,omitempty"`
}

// oldComponentKind is a kind whose selected objects are all components.
type oldComponentKind struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
}

type oldDescriptor struct {
	Type        string           `json:"type,omitempty"`
	Version     string           `json:"version,omitempty"`
	Description string           `json:"description,omitempty"`
	Icons       []map[string]any `json:"icons,omitempty"`
	Maintainers []oldContact     `json:"maintainers,omitempty"`
	Owners      []oldContact     `json:"owners,omitempty"`
	Keywords    []string         `json:"keywords,omitempty"`
	Links       []oldLink        `json:"links,omitempty"`
	Notes       string           `json:"notes,omitempty"`
}

type oldContact struct {
	Name  string `json:"name,omitempty"`
	URL   string `json:"url,omitempty"`
	Email string `json:"email,omitempty"`
}

type oldLink struct {
	Description string `json:"description,omitempty"`
	URL         string `json:"url,omitempty"`
}

// oldInfo is a piece of information about the application; its value may be in another object.
type oldInfo struct {
	Name      string         `json:"name,omitempty"`
	Type      string         `json:"type,omitempty"`
	Value     string         `json:"value,omitempty"`
	ValueFrom map[string]any `json:"valueFrom,omitempty"`
}
