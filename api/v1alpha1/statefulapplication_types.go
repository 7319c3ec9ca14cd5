package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// StatefulApplicationKind is the kind of a StatefulApplication.
const StatefulApplicationKind = "StatefulApplication"

// SubstitutionType says which values a rule applies to.
// +kubebuilder:validation:Enum=Name;Label;Annotation;EnvVar;Value
type SubstitutionType string

const (
	// SubstitutionName applies to names of objects, and to every reference to them.
	SubstitutionName SubstitutionType = "Name"

	// SubstitutionLabel applies to labels wherever they appear, selectors and templates included.
	SubstitutionLabel SubstitutionType = "Label"

	// SubstitutionAnnotation applies to annotations, those of templates included.
	SubstitutionAnnotation SubstitutionType = "Annotation"

	// SubstitutionEnvVar applies to the values of environment variables.
	SubstitutionEnvVar SubstitutionType = "EnvVar"

	// SubstitutionValue applies to the values of the ApplicationInstallation that the application is
	// restored as.
	SubstitutionValue SubstitutionType = "Value"
)

// SubstitutionMatch says how the old value is found.
// +kubebuilder:validation:Enum=Substring;Exact;Regex
type SubstitutionMatch string

const (
	// MatchSubstring replaces every occurrence within a value.
	MatchSubstring SubstitutionMatch = "Substring"

	// MatchExact replaces whole values.
	MatchExact SubstitutionMatch = "Exact"

	// MatchRegex replaces every match of a regular expression (RE2); the new value may use $1.
	MatchRegex SubstitutionMatch = "Regex"
)

// ValueSubstitutionRule changes values of an application that is restored.
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.type != 'Name'",message="key has no meaning for type Name"
// +kubebuilder:validation:XValidation:rule="self.type != 'Name' || self.newValue.size() > 0",message="newValue must not be empty for type Name"
type ValueSubstitutionRule struct {
	// Type of the values: Name, Label, Annotation, EnvVar or Value.
	// +required
	Type SubstitutionType `json:"type"`

	// Key of the label, of the annotation or name of the environment variable; for type Value, the path
	// in values, such as `ingress.hostname`, without indexes of lists. Default: any.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`

	// OldValue that is replaced.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	OldValue string `json:"oldValue"`

	// NewValue in its place. Empty: keys whose value holds oldValue are removed.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=4096
	NewValue string `json:"newValue"`

	// Match says how oldValue is found: Substring, Exact or Regex. Default: Substring.
	// +optional
	// +kubebuilder:default=Substring
	Match SubstitutionMatch `json:"match,omitempty"`

	// Selector selects the objects that the rule applies to, by their labels in the snapshot.
	// Default: all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// DataSourceType says what an application is restored from.
// +kubebuilder:validation:Enum=Snapshot;Backup
type DataSourceType string

const (
	// DataSourceSnapshot is an ApplicationSnapshot.
	DataSourceSnapshot DataSourceType = "Snapshot"

	// DataSourceBackup is an ApplicationBackup. It is not supported yet.
	DataSourceBackup DataSourceType = "Backup"
)

// SnapshotReference names an ApplicationSnapshot or an ApplicationBackup.
type SnapshotReference struct {
	// Namespace of the object. Default: that of the object that refers to it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// UID of the object. If set, no other object of that name is used. Admission fills it in: a user who
	// replaces the object later does not decide what is restored.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	UID string `json:"uid,omitempty"`
}

// DataSource is what an application is restored from, or rolled back to.
// +kubebuilder:validation:XValidation:rule="self.type != 'Snapshot' || has(self.snapshotRef)",message="snapshotRef is required for type Snapshot"
// +kubebuilder:validation:XValidation:rule="self.type != 'Backup'",message="backups are not supported yet"
type DataSource struct {
	// Type of the source: Snapshot or Backup. Backup is not supported yet.
	// +required
	Type DataSourceType `json:"type"`

	// SnapshotRef names the ApplicationSnapshot.
	// +optional
	SnapshotRef *SnapshotReference `json:"snapshotRef,omitempty"`

	// BackupRef names the ApplicationBackup. It is not supported yet.
	// +optional
	BackupRef *SnapshotReference `json:"backupRef,omitempty"`
}

// StatefulApplicationSpec describes an application with data.
// +kubebuilder:validation:XValidation:rule="has(self.applicationName) || has(self.source)",message="name an Application, or a source to restore one from"
// +kubebuilder:validation:XValidation:rule="has(self.applicationName) == has(oldSelf.applicationName) && (!has(self.applicationName) || self.applicationName == oldSelf.applicationName)",message="applicationName is immutable: create another StatefulApplication"
// +kubebuilder:validation:XValidation:rule="!has(self.valueSubstitutionRules) || has(self.source)",message="valueSubstitutionRules apply only with a source"
type StatefulApplicationSpec struct {
	// ApplicationClassName is the name of the StatefulApplicationClass. Default: the one with
	// annotation apps.waybill.dev/is-default-class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ApplicationClassName string `json:"applicationClassName,omitempty"`

	// ApplicationName is the name of the Application in the same namespace; of the one to be
	// created if there is a source. Default: the name of the StatefulApplication. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ApplicationName string `json:"applicationName,omitempty"`

	// Source that the application is restored from, once. Immutable once the restore has begun. An
	// application that an ApplicationInstallation of its namespace manages is restored as an
	// ApplicationInstallation of the same version and values, which no GitSync delivers; all others as
	// plain objects.
	// +optional
	Source *DataSource `json:"source,omitempty"`

	// ValueSubstitutionRules change values of what is restored, in this order. Immutable once
	// the first object is created.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	ValueSubstitutionRules []ValueSubstitutionRule `json:"valueSubstitutionRules,omitempty"`
}

// RestoredFrom names what an application was restored from, or rolled back to, last.
type RestoredFrom struct {
	// APIGroup of the source.
	// +required
	APIGroup string `json:"apiGroup"`

	// Kind of the source.
	// +required
	Kind string `json:"kind"`

	// Namespace of the source.
	// +required
	Namespace string `json:"namespace"`

	// Name of the source.
	// +required
	Name string `json:"name"`

	// UID of the source.
	// +required
	UID string `json:"uid"`
}

// RestorePhase is the step that a restore is at. It is recorded before the step is carried out.
// +kubebuilder:validation:Enum=Pending;Claims;Objects;Completed;Failed
type RestorePhase string

// Reasons of StatefulApplication.
const (
	// InvalidClassReason: the class has parameters, and Waybill knows none.
	InvalidClassReason = "InvalidClass"

	// SnapshotNotFoundReason: the ApplicationSnapshot, or its content, does not exist.
	SnapshotNotFoundReason = "SnapshotNotFound"

	// SnapshotNotReadyReason: the ApplicationSnapshot is not ready, or will never be.
	SnapshotNotReadyReason = "SnapshotNotReady"

	// SnapshotDamagedReason: the stored definitions are not those that were captured, or cannot be
	// read. Nothing is made of them.
	SnapshotDamagedReason = "SnapshotDamaged"

	// InvalidRulesReason: a substitution rule is not valid, or leads to an object that is not. The
	// message names both.
	InvalidRulesReason = "InvalidRules"

	// StorageClassNotFoundReason: the cluster has no StorageClass for a claim, or one of another driver.
	StorageClassNotFoundReason = "StorageClassNotFound"

	// VolumeSnapshotMissingReason: a VolumeSnapshot of the snapshot does not exist, is not ready to use, or
	// the cluster does not serve VolumeSnapshots.
	VolumeSnapshotMissingReason = "VolumeSnapshotMissing"

	// VolumeNotRestoredReason: a claim was bound to a PersistentVolume that was there before, and does not
	// have the data of the snapshot.
	VolumeNotRestoredReason = "VolumeNotRestored"

	// AlreadyExistsReason: objects that a restore is to create exist already. It has created none, and
	// does not overwrite them.
	AlreadyExistsReason = "AlreadyExists"

	// RestoreRefusedReason: the API server refuses objects of a restore; status.restore.problems lists
	// them. They are tried again.
	RestoreRefusedReason = "RestoreRefused"
)

// The phases of a restore, in their order.
const (
	// RestorePending: the definitions are read, and it is checked that nothing of them exists.
	RestorePending RestorePhase = "Pending"

	// RestoreClaims: claims are created from the VolumeSnapshots. Those whose volumes are made when a Pod
	// uses them are not waited for.
	RestoreClaims RestorePhase = "Claims"

	// RestoreObjects: the other objects are created, the Application last, and the claims get their
	// volumes.
	RestoreObjects RestorePhase = "Objects"

	// RestoreCompleted: everything was created. It is never done again.
	RestoreCompleted RestorePhase = "Completed"

	// RestoreFailed: the restore was given up; what it had created is named, and removed with the
	// StatefulApplication.
	RestoreFailed RestorePhase = "Failed"
)

// RuleHits is how often a substitution rule applied.
type RuleHits struct {
	// Rule is the index of the rule in the spec.
	// +required
	Rule int32 `json:"rule"`

	// Hits is the number of values that were replaced or removed.
	// +required
	Hits int32 `json:"hits"`
}

// RestoreStatus is how far a restore is.
type RestoreStatus struct {
	// Phase is the step that the restore is at.
	// +required
	Phase RestorePhase `json:"phase"`

	// ContentName is the name of the ApplicationSnapshotContent that is restored. It is not deleted
	// as long as the restore runs.
	// +optional
	ContentName string `json:"contentName,omitempty"`

	// Inventory lists what the restore creates, in the order in which it does. It is recorded before
	// the first of them is created.
	// +optional
	// +listType=atomic
	Inventory []ObjectReference `json:"inventory,omitempty"`

	// Created is how many of Objects objects were created.
	// +optional
	Created int32 `json:"created,omitempty"`

	// Objects is how many objects the restore creates.
	// +optional
	Objects int32 `json:"objects,omitempty"`

	// Rules says how often each rule applied.
	// +optional
	// +listType=atomic
	Rules []RuleHits `json:"rules,omitempty"`

	// Problems lists the objects that the API server refused.
	// +optional
	// +listType=atomic
	Problems []Problem `json:"problems,omitempty"`
}

// StatefulApplicationStatus is the observed state of a StatefulApplication.
type StatefulApplicationStatus struct {
	ReconcileStatus `json:",inline"`

	// Source that the application was restored from, or rolled back to, last.
	// +optional
	Source *RestoredFrom `json:"source,omitempty"`

	// Restore is how far the restore is.
	// +optional
	Restore *RestoreStatus `json:"restore,omitempty"`

	// LastSnapshot is the name of the newest snapshot that is ready.
	// +optional
	LastSnapshot string `json:"lastSnapshot,omitempty"`

	// LastSnapshotTime is when its volumes were cut.
	// +optional
	LastSnapshotTime *metav1.Time `json:"lastSnapshotTime,omitempty"`
}

// StatefulApplication is an Application with data: it can be snapshotted, restored, cloned and rolled
// back.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=waybill,shortName=sapp
// +kubebuilder:printcolumn:name="Application",type=string,JSONPath=`.spec.applicationName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.source.name`
// +kubebuilder:printcolumn:name="Last-Snapshot",type=date,JSONPath=`.status.lastSnapshotTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.restore) || oldSelf.status.restore.phase == 'Pending' || (has(self.spec.valueSubstitutionRules) == has(oldSelf.spec.valueSubstitutionRules) && (!has(self.spec.valueSubstitutionRules) || self.spec.valueSubstitutionRules == oldSelf.spec.valueSubstitutionRules))",message="spec.valueSubstitutionRules is immutable once the first object is created"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.restore) || (has(self.spec.source) == has(oldSelf.spec.source) && (!has(self.spec.source) || self.spec.source == oldSelf.spec.source))",message="spec.source is immutable once the restore has begun"
type StatefulApplication struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the application.
	Spec StatefulApplicationSpec `json:"spec"`

	// Status reports what it was restored from, and how far that is.
	// +kubebuilder:default={"observedGeneration":-1}
	Status StatefulApplicationStatus `json:"status,omitempty"`
}

// StatefulApplicationList is a list of StatefulApplications.
// +kubebuilder:object:root=true
type StatefulApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StatefulApplication `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (s *StatefulApplication) GetReconcileStatus() *ReconcileStatus { return &s.Status.ReconcileStatus }

// GetConditions returns the conditions of the status.
func (s *StatefulApplication) GetConditions() []metav1.Condition { return s.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (s *StatefulApplication) SetConditions(c []metav1.Condition) { s.Status.Conditions = c }

// Matches reports whether the object of that name, with this UID, is the one that is meant.
func (r *SnapshotReference) Matches(uid types.UID) bool { return r.UID == "" || r.UID == string(uid) }

// GetApplicationName returns the name of the Application.
func (s *StatefulApplication) GetApplicationName() string {
	if s.Spec.ApplicationName == "" {
		return s.Name
	}
	return s.Spec.ApplicationName
}
