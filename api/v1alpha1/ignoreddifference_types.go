package v1alpha1

// IgnoredDifference names fields of objects that others set: after an object was created, what stands
// in them is neither drift nor written.
type IgnoredDifference struct {
	// Target selects the objects. Default: all.
	// +optional
	Target *DifferenceTarget `json:"target,omitempty"`

	// JSONPointers name the fields by JSON pointers of RFC 6901, such as `/spec/replicas`. The number of a
	// list item counts in the source; the same item is found in the cluster by its keys, where the list has
	// keys.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(/([^/~]|~[01])*)+$`
	// +kubebuilder:validation:items:XValidation:rule="!(self in ['/', '/apiVersion', '/kind', '/metadata', '/metadata/name', '/metadata/namespace', '/metadata/labels', '/metadata/annotations'])",message="the identity of an object, and all its labels or annotations together, cannot be ignored"
	// +kubebuilder:validation:items:XValidation:rule="!self.startsWith('/metadata/labels/apps.waybill.dev~1') && !self.startsWith('/metadata/annotations/apps.waybill.dev~1')",message="the marks of Waybill cannot be ignored"
	JSONPointers []string `json:"jsonPointers"`
}

// DifferenceTarget selects objects by what their source says. All that is set has to match. Group,
// version, kind, namespace and name are regular expressions that have to match as a whole.
type DifferenceTarget struct {
	// Group of the kind; `^$` for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// Version of the kind.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`

	// Kind of the objects.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Kind string `json:"kind,omitempty"`

	// Namespace of the objects.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`

	// Name of the objects.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// LabelSelector selects by labels, in the form that kubectl takes: `tier=web,env!=dev`.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LabelSelector string `json:"labelSelector,omitempty"`

	// AnnotationSelector selects by annotations, in the same form.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	AnnotationSelector string `json:"annotationSelector,omitempty"`
}
