package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ApplicationSnapshotContentKind is the kind of an ApplicationSnapshotContent.
const ApplicationSnapshotContentKind = "ApplicationSnapshotContent"

// NamespacedReference names an object of a known kind.
type NamespacedReference struct {
	// Namespace of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// UID of the object; empty as long as it is not known.
	// +optional
	UID string `json:"uid,omitempty"`
}

// MetadataHandleType says where the definitions of an application's objects are stored.
// +kubebuilder:validation:Enum=Object;OnDisk
type MetadataHandleType string

const (
	// MetadataObject stores them in Secrets of Waybill's system namespace, compressed.
	MetadataObject MetadataHandleType = "Object"

	// MetadataOnDisk stores them in a folder of the volume that waybill-sync has for them.
	MetadataOnDisk MetadataHandleType = "OnDisk"
)

// MetadataHandle says where the definitions of an application's objects are stored.
// +kubebuilder:validation:XValidation:rule="self.type != 'OnDisk' || has(self.onDisk)",message="onDisk is required for type OnDisk"
// +kubebuilder:validation:XValidation:rule="self.type != 'Object' || has(self.object)",message="object is required for type Object"
type MetadataHandle struct {
	// Type of the storage: Object or OnDisk.
	// +required
	Type MetadataHandleType `json:"type"`

	// OnDisk is where they are if the type is OnDisk.
	// +optional
	OnDisk *OnDiskHandle `json:"onDisk,omitempty"`

	// Object is where they are if the type is Object.
	// +optional
	Object *ObjectHandle `json:"object,omitempty"`

	// Digest of the definitions, as sha256:HEX. What has another one is not restored.
	// +required
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest"`
}

// OnDiskHandle is a folder.
type OnDiskHandle struct {
	// Directory below the volume that waybill-sync has for definitions.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '')",message="directory must be a relative path without .."
	Directory string `json:"directory"`
}

// ObjectHandle is a series of Secrets.
type ObjectHandle struct {
	// Name of the Secrets in the system namespace, without their number.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	Name string `json:"name"`

	// Chunks is the number of Secrets.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Chunks int32 `json:"chunks"`
}

// ApplicationSnapshotContentSpec describes what a snapshot consists of.
// +kubebuilder:validation:XValidation:rule="self.snapshotClassName == oldSelf.snapshotClassName",message="snapshotClassName is immutable"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.metadataHandle) || (has(self.metadataHandle) && self.metadataHandle == oldSelf.metadataHandle)",message="metadataHandle is immutable"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.snapshotRef) || !has(oldSelf.snapshotRef.uid) || (has(self.snapshotRef) && self.snapshotRef == oldSelf.snapshotRef)",message="a bound content is not bound again"
type ApplicationSnapshotContentSpec struct {
	// SnapshotClassName is the name of the ApplicationSnapshotClass. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SnapshotClassName string `json:"snapshotClassName"`

	// SnapshotRef names the ApplicationSnapshot that the content is bound to or, without a UID, the
	// only one that it can be bound to. If unset, an ApplicationSnapshot of any namespace can be bound
	// to it whose author has verb `use` on the content.
	// +optional
	SnapshotRef *NamespacedReference `json:"snapshotRef,omitempty"`

	// VolumeSnapshotRefs maps names of claims to their VolumeSnapshots.
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	VolumeSnapshotRefs map[string]NamespacedReference `json:"volumeSnapshotRefs,omitempty"`

	// Tags of the snapshot, and those that pre-hooks printed.
	// +optional
	// +kubebuilder:validation:MaxProperties=200
	Tags map[string]string `json:"tags,omitempty"`

	// MetadataHandle says where the definitions of the objects are stored.
	// +optional
	MetadataHandle *MetadataHandle `json:"metadataHandle,omitempty"`

	// DeletionPolicy: Delete or Retain. It outranks that of the class.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ApplicationSnapshotContentStatus is the observed state of a content.
type ApplicationSnapshotContentStatus struct {
	ReconcileStatus `json:",inline"`

	// Consistency says what the snapshot promises.
	// +optional
	Consistency SnapshotConsistency `json:"consistency,omitempty"`

	// CreationTime is when the last volume was cut.
	// +optional
	CreationTime *metav1.Time `json:"creationTime,omitempty"`

	// Kinds of the objects whose definitions the content holds, as RESOURCE.GROUP: deployments.apps.
	// Who restores them must be allowed to create them.
	// +optional
	// +listType=set
	Kinds []string `json:"kinds,omitempty"`

	// Definition is the name of the ApplicationDefinition whose ApplicationInstallation the content holds.
	// Who restores it must be allowed to install it. Empty: if the content holds an installation, or values
	// that may be those of any, who restores it must be allowed to install any.
	// +optional
	Definition string `json:"definition,omitempty"`

	// ApplicationName is the name of the StatefulApplication that the snapshot was taken of.
	// +optional
	ApplicationName string `json:"applicationName,omitempty"`
}

// ApplicationSnapshotContent is what a snapshot consists of. It is created by a successful snapshot,
// or by an administrator for a snapshot to be bound to.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=waybill,shortName=appsnapcontent
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.snapshotRef.namespace`
// +kubebuilder:printcolumn:name="Snapshot",type=string,JSONPath=`.spec.snapshotRef.name`
// +kubebuilder:printcolumn:name="Consistency",type=string,JSONPath=`.status.consistency`
// +kubebuilder:printcolumn:name="Deletion-Policy",type=string,JSONPath=`.spec.deletionPolicy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ApplicationSnapshotContent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes what the snapshot consists of.
	Spec ApplicationSnapshotContentSpec `json:"spec"`

	// Status reports whether it is usable.
	// +kubebuilder:default={"observedGeneration":-1}
	Status ApplicationSnapshotContentStatus `json:"status,omitempty"`
}

// ApplicationSnapshotContentList is a list of ApplicationSnapshotContents.
// +kubebuilder:object:root=true
type ApplicationSnapshotContentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApplicationSnapshotContent `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (a *ApplicationSnapshotContent) GetReconcileStatus() *ReconcileStatus {
	return &a.Status.ReconcileStatus
}

// GetConditions returns the conditions of the status.
func (a *ApplicationSnapshotContent) GetConditions() []metav1.Condition { return a.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (a *ApplicationSnapshotContent) SetConditions(c []metav1.Condition) { a.Status.Conditions = c }
