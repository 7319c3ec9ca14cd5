package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ApplicationSnapshotClassKind is the kind of an ApplicationSnapshotClass.
const ApplicationSnapshotClassKind = "ApplicationSnapshotClass"

// DataHandler is the name by which classes choose Waybill, as `snapshotter` or `handler`.
const DataHandler = "data.waybill.dev"

// DefaultClassAnnotation marks the class that is used where none is named, with value "true".
const DefaultClassAnnotation = "apps.waybill.dev/is-default-class"

// DeletionPolicy says what becomes of a content and what it holds when the bound snapshot is
// deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

const (
	// DeletionPolicyDelete deletes the content, the VolumeSnapshots and the stored definitions.
	DeletionPolicyDelete DeletionPolicy = "Delete"

	// DeletionPolicyRetain keeps them all. The VolumeSnapshotContents are set to Retain as well: what the
	// driver has taken then outlives the VolumeSnapshots, which go with their namespace.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)

// QuiesceMethod says how an application is brought to rest.
// +kubebuilder:validation:Enum=Hooks;ScaleDown
type QuiesceMethod string

const (
	// QuiesceHooks runs the hooks of the class, if there are any.
	QuiesceHooks QuiesceMethod = "Hooks"

	// QuiesceScaleDown scales all workloads of the application to zero.
	QuiesceScaleDown QuiesceMethod = "ScaleDown"
)

// HookSpec names an action for containers of an application.
type HookSpec struct {
	// Name of the hook; the ExecutionHook is named after it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// PodFilter selects the Pods of the application that the action runs in. Default: all.
	// +optional
	PodFilter *metav1.LabelSelector `json:"podFilter,omitempty"`

	// Container that the action runs in. Default: the first of the Pod.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// ActionName is the name of a HookAction in the namespace of the application.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ActionName string `json:"actionName"`
}

// ApplicationSnapshotClass says how snapshots are taken.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=waybill,shortName=appsnapclass
// +kubebuilder:printcolumn:name="Snapshotter",type=string,JSONPath=`.snapshotter`
// +kubebuilder:printcolumn:name="Quiesce",type=string,JSONPath=`.quiesce`
// +kubebuilder:printcolumn:name="Deletion-Policy",type=string,JSONPath=`.deletionPolicy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.quiesce) || self.quiesce != 'ScaleDown' || (!has(self.preHooks) && !has(self.postHooks))",message="preHooks and postHooks do not run with quiesce ScaleDown"
type ApplicationSnapshotClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Snapshotter is the name of the controller that takes snapshots of this class. Waybill's is
	// data.waybill.dev; snapshots of other classes are left alone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Snapshotter string `json:"snapshotter"`

	// VolumeSnapshotClassNames maps names of StorageClasses to names of VolumeSnapshotClasses. For
	// other claims it is the default VolumeSnapshotClass of the driver.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	VolumeSnapshotClassNames map[string]string `json:"volumeSnapshotClassNames,omitempty"`

	// VolumeGroupSnapshotClassNames maps names of CSI drivers to names of VolumeGroupSnapshotClasses:
	// all volumes of such a driver are cut at one moment.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	VolumeGroupSnapshotClassNames map[string]string `json:"volumeGroupSnapshotClassNames,omitempty"`

	// Parameters for other snapshotters. Waybill's has none, and refuses any.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Parameters map[string]string `json:"parameters,omitempty"`

	// Quiesce says how applications are brought to rest: Hooks or ScaleDown. Default: Hooks.
	// +optional
	// +kubebuilder:default=Hooks
	Quiesce QuiesceMethod `json:"quiesce,omitempty"`

	// PreHooks run before the volumes are cut, one after the other, in this order. One container
	// has at most one.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	PreHooks []HookSpec `json:"preHooks,omitempty"`

	// PostHooks run after the volumes are cut, one after the other, in this order, also when something
	// failed before. One container has at most one.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	PostHooks []HookSpec `json:"postHooks,omitempty"`

	// Metadata says where the definitions of the objects are stored: Object or OnDisk. Default:
	// Object.
	// +optional
	// +kubebuilder:default=Object
	Metadata MetadataHandleType `json:"metadataType,omitempty"`

	// DeletionPolicy of the contents: Delete or Retain. Default: Delete.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ApplicationSnapshotClassList is a list of ApplicationSnapshotClasses.
// +kubebuilder:object:root=true
type ApplicationSnapshotClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApplicationSnapshotClass `json:"items"`
}
