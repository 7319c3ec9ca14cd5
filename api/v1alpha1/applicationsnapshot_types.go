package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApplicationSnapshotKind is the kind of an ApplicationSnapshot.
const ApplicationSnapshotKind = "ApplicationSnapshot"

// HookPolicy says whether a snapshot needs the hooks of its class.
// +kubebuilder:validation:Enum=Require;Try
type HookPolicy string

const (
	// HookPolicyRequire: without hooks, there is no snapshot.
	HookPolicyRequire HookPolicy = "Require"

	// HookPolicyTry: a snapshot without hooks is better than none.
	HookPolicyTry HookPolicy = "Try"
)

// SnapshotSourceType says what a snapshot is made from.
// +kubebuilder:validation:Enum=Application;Backup
type SnapshotSourceType string

const (
	// SnapshotSourceApplication takes a snapshot of a StatefulApplication.
	SnapshotSourceApplication SnapshotSourceType = "Application"

	// SnapshotSourceBackup imports an ApplicationBackup. It is not supported yet.
	SnapshotSourceBackup SnapshotSourceType = "Backup"
)

// SnapshotSource is what a snapshot is made from; empty to bind the snapshot to an existing
// content.
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Application' || has(self.applicationName)",message="applicationName is required for type Application"
// +kubebuilder:validation:XValidation:rule="has(self.type) || (!has(self.applicationName) && !has(self.backupName))",message="type is required with applicationName or backupName"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Backup'",message="backups are not supported yet"
type SnapshotSource struct {
	// Type of the source: Application or Backup. Backup is not supported yet. Empty: the snapshot is
	// bound to the content that spec.snapshotContentName names.
	// +optional
	Type SnapshotSourceType `json:"type,omitempty"`

	// ApplicationName is the name of a StatefulApplication in the same namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ApplicationName string `json:"applicationName,omitempty"`

	// BackupName is the name of an ApplicationBackup in the same namespace. It is not supported
	// yet.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BackupName string `json:"backupName,omitempty"`
}

// ApplicationSnapshotSpec describes a snapshot to be taken, or one to be bound.
// +kubebuilder:validation:XValidation:rule="self.snapshotClassName == oldSelf.snapshotClassName && self.source == oldSelf.source",message="snapshotClassName and source are immutable: create another ApplicationSnapshot"
// +kubebuilder:validation:XValidation:rule="has(self.persistentVolumeClaimFilter) == has(oldSelf.persistentVolumeClaimFilter) && (!has(self.persistentVolumeClaimFilter) || self.persistentVolumeClaimFilter == oldSelf.persistentVolumeClaimFilter)",message="persistentVolumeClaimFilter is immutable: create another ApplicationSnapshot"
// +kubebuilder:validation:XValidation:rule="has(self.snapshotContentName) == has(oldSelf.snapshotContentName) && (!has(self.snapshotContentName) || self.snapshotContentName == oldSelf.snapshotContentName)",message="snapshotContentName is immutable: create another ApplicationSnapshot"
// +kubebuilder:validation:XValidation:rule="has(self.hookPolicy) == has(oldSelf.hookPolicy) && (!has(self.hookPolicy) || self.hookPolicy == oldSelf.hookPolicy)",message="hookPolicy is immutable: create another ApplicationSnapshot"
// +kubebuilder:validation:XValidation:rule="has(self.source.type) || has(self.snapshotContentName)",message="name a source, or the content to bind to in snapshotContentName"
// +kubebuilder:validation:XValidation:rule="!has(self.source.type) || !has(self.snapshotContentName) || !self.snapshotContentName.startsWith('snapcontent-')",message="snapshotContentName must not begin with snapcontent-, unless the snapshot is bound to an existing content: these names are for contents whose name is not chosen"
type ApplicationSnapshotSpec struct {
	// SnapshotClassName is the name of the ApplicationSnapshotClass. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SnapshotClassName string `json:"snapshotClassName"`

	// Source of the snapshot; `{}` to bind to an existing content. Immutable.
	// +required
	Source SnapshotSource `json:"source"`

	// Tags are free texts that go with the snapshot.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Tags map[string]string `json:"tags,omitempty"`

	// PersistentVolumeClaimFilter selects the claims of the application whose volumes are
	// snapshotted. Default: all. Immutable.
	// +optional
	PersistentVolumeClaimFilter *metav1.LabelSelector `json:"persistentVolumeClaimFilter,omitempty"`

	// SnapshotContentName is the name of the ApplicationSnapshotContent: of the one to bind to if
	// the source is empty, and else of the one that is created, which must not begin with
	// `snapcontent-`. Default: `snapcontent-<uid>`. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SnapshotContentName string `json:"snapshotContentName,omitempty"`

	// VolumeSnapshotTimeoutSeconds is how long the VolumeSnapshots may take to become ready. After
	// that the snapshot fails; the application is released in any case. Default: 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	VolumeSnapshotTimeoutSeconds *int64 `json:"volumeSnapshotTimeoutSeconds,omitempty"`

	// HookPolicy says what becomes of the snapshot if the hooks of the class cannot run, or a pre-hook fails, as in an
	// application that does not start. With Require, it fails. With Try, it is taken without: status.consistency then
	// says so. Default: Require. Immutable.
	// +optional
	HookPolicy HookPolicy `json:"hookPolicy,omitempty"`

	// TTL is how long after it has completed or failed the snapshot is deleted. Default:
	// never.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9.]+(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('1s')",message="must be at least 1s, in hours, minutes and seconds: 720h, 2m30s, 90s"
	TTL metav1.Duration `json:"ttl,omitzero"`
}

// SnapshotConsistency says what a snapshot promises.
// +kubebuilder:validation:Enum=Application;Group;PerVolume;Cold
type SnapshotConsistency string

const (
	// ConsistencyApplication: hooks had quiesced the application when the volumes were cut.
	ConsistencyApplication SnapshotConsistency = "Application"

	// ConsistencyGroup: no hooks ran, or one failed; all volumes were cut at one moment, by one VolumeGroupSnapshot.
	ConsistencyGroup SnapshotConsistency = "Group"

	// ConsistencyPerVolume: no hooks ran, or one failed; each volume was cut at a moment of its own.
	ConsistencyPerVolume SnapshotConsistency = "PerVolume"

	// ConsistencyCold: the application was scaled to zero.
	ConsistencyCold SnapshotConsistency = "Cold"
)

// SnapshotPhase is the step that a snapshot is at. It is recorded before the step is carried out.
// +kubebuilder:validation:Enum=Pending;Capturing;Quiescing;Cutting;Releasing;Waiting;Binding;Ready;Failed
type SnapshotPhase string

// The phases of a snapshot, in their order. Whatever fails after Quiescing passes through Releasing.
const (
	// SnapshotPending: what the snapshot consists of is being found out.
	SnapshotPending SnapshotPhase = "Pending"

	// SnapshotCapturing: the definitions of the objects are being stored.
	SnapshotCapturing SnapshotPhase = "Capturing"

	// SnapshotQuiescing: pre-hooks run, or workloads are scaled to zero.
	SnapshotQuiescing SnapshotPhase = "Quiescing"

	// SnapshotCutting: VolumeSnapshots are created, and not all are cut yet.
	SnapshotCutting SnapshotPhase = "Cutting"

	// SnapshotReleasing: post-hooks run, or workloads are scaled up.
	SnapshotReleasing SnapshotPhase = "Releasing"

	// SnapshotWaiting: VolumeSnapshots are cut, and not all are ready to use.
	SnapshotWaiting SnapshotPhase = "Waiting"

	// SnapshotBinding: the content is being created, or bound.
	SnapshotBinding SnapshotPhase = "Binding"

	// SnapshotReady: the snapshot can be restored.
	SnapshotReady SnapshotPhase = "Ready"

	// SnapshotFailed: the snapshot will never be ready.
	SnapshotFailed SnapshotPhase = "Failed"
)

// DataError is why an operation on an application's data failed.
type DataError struct {
	// Time of the failure.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// Reason is one word, for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says what failed and what to do, for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// ApplicationSnapshotStatus is the observed state of a snapshot.
type ApplicationSnapshotStatus struct {
	ReconcileStatus `json:",inline"`

	// Phase is the step that the snapshot is at.
	// +optional
	Phase SnapshotPhase `json:"phase,omitempty"`

	// Plan is what the class said when the snapshot was begun.
	// +optional
	Plan *SnapshotPlan `json:"plan,omitempty"`

	// Error is why the snapshot failed.
	// +optional
	Error *DataError `json:"error,omitempty"`

	// BoundSnapshotContentName is the name of the content that the snapshot is bound to.
	// +optional
	BoundSnapshotContentName string `json:"boundSnapshotContentName,omitempty"`

	// Consistency says what the snapshot promises: Application, Group, PerVolume or Cold.
	// +optional
	Consistency SnapshotConsistency `json:"consistency,omitempty"`

	// QuiescedFrom is when the first hook was started, or the first workload scaled down.
	// +optional
	QuiescedFrom *metav1.MicroTime `json:"quiescedFrom,omitempty"`

	// QuiescedFor is how long the application was quiesced.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9.]+(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('0s')",message="must be in hours, minutes and seconds: 1h, 2m30s, 0.9s"
	QuiescedFor metav1.Duration `json:"quiescedFor,omitzero"`

	// Quiesced lists the pre-hooks that were begun.
	// +optional
	// +listType=atomic
	Quiesced []QuiescedHook `json:"quiesced,omitempty"`

	// Tags that the pre-hooks printed.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// Scaled lists the workloads that were scaled to zero.
	// +optional
	// +listType=atomic
	Scaled []ScaledWorkload `json:"scaled,omitempty"`

	// Held lists these workloads, and the ApplicationInstallation of the application, until they have their
	// replicas back: GitSyncs, installations and KubernetesApplications leave them alone.
	// +optional
	// +listType=atomic
	Held []ObjectReference `json:"held,omitempty"`

	// Volumes of the snapshot, by claim.
	// +optional
	// +listType=atomic
	Volumes []SnapshotVolume `json:"volumes,omitempty"`

	// Metadata says where the definitions of the objects are stored.
	// +optional
	Metadata *MetadataHandle `json:"metadata,omitempty"`

	// Objects is how many objects' definitions the snapshot holds.
	// +optional
	Objects int32 `json:"objects,omitempty"`

	// CutFrom is when the first VolumeSnapshot was created; the timeout counts from then.
	// +optional
	CutFrom *metav1.Time `json:"cutFrom,omitempty"`

	// CreationTime is when the last volume was cut.
	// +optional
	CreationTime *metav1.Time `json:"creationTime,omitempty"`

	// CompletionTime is when the snapshot was ready or had failed; the TTL counts from then.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Size of all volumes that are made from the snapshot, for the printed column.
	// +optional
	Size string `json:"size,omitempty"`
}

// ApplicationSnapshot is an application's configuration and data at one moment.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=waybill,shortName=appsnap
// +kubebuilder:printcolumn:name="Application",type=string,JSONPath=`.spec.source.applicationName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Consistency",type=string,JSONPath=`.status.consistency`
// +kubebuilder:printcolumn:name="Quiesced",type=string,JSONPath=`.status.quiescedFor`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Content",type=string,JSONPath=`.status.boundSnapshotContentName`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type ApplicationSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the snapshot.
	Spec ApplicationSnapshotSpec `json:"spec"`

	// Status reports how far it is, and what it promises.
	// +kubebuilder:default={"observedGeneration":-1}
	Status ApplicationSnapshotStatus `json:"status,omitempty"`
}

// ApplicationSnapshotList is a list of ApplicationSnapshots.
// +kubebuilder:object:root=true
type ApplicationSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApplicationSnapshot `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (a *ApplicationSnapshot) GetReconcileStatus() *ReconcileStatus { return &a.Status.ReconcileStatus }

// GetConditions returns the conditions of the status.
func (a *ApplicationSnapshot) GetConditions() []metav1.Condition { return a.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (a *ApplicationSnapshot) SetConditions(c []metav1.Condition) { a.Status.Conditions = c }

// GetVolumeSnapshotTimeout returns how long the VolumeSnapshots may take to become ready.
func (a *ApplicationSnapshot) GetVolumeSnapshotTimeout() time.Duration {
	if a.Spec.VolumeSnapshotTimeoutSeconds == nil {
		return 10 * time.Minute
	}
	return time.Duration(*a.Spec.VolumeSnapshotTimeoutSeconds) * time.Second
}
