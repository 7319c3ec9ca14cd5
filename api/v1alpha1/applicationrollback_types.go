package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApplicationRollbackKind is the kind of an ApplicationRollback.
const ApplicationRollbackKind = "ApplicationRollback"

// RollbackDecision says what becomes of a rollback that is done.
// +kubebuilder:validation:Enum=Undecided;Confirmed;Undone
type RollbackDecision string

const (
	// RollbackUndecided keeps the volumes of before until undoPeriod is over.
	RollbackUndecided RollbackDecision = "Undecided"

	// RollbackConfirmed deletes the volumes of before.
	RollbackConfirmed RollbackDecision = "Confirmed"

	// RollbackUndone goes back to the state before the rollback.
	RollbackUndone RollbackDecision = "Undone"
)

// ApplicationRollbackSpec describes a rollback.
// +kubebuilder:validation:XValidation:rule="self.applicationName == oldSelf.applicationName && self.snapshotClassName == oldSelf.snapshotClassName && self.source == oldSelf.source",message="applicationName, snapshotClassName and source are immutable: create another ApplicationRollback"
type ApplicationRollbackSpec struct {
	// SnapshotClassName is the name of the ApplicationSnapshotClass of the safety snapshot.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SnapshotClassName string `json:"snapshotClassName"`

	// ApplicationName is the name of the StatefulApplication in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ApplicationName string `json:"applicationName"`

	// Source that the application is rolled back to: a snapshot of it.
	// +required
	Source DataSource `json:"source"`

	// UndoPeriod is how long the volumes of before are kept unless the rollback is confirmed. Default:
	// 24h; 0s deletes them as soon as the application is ready. At most 720h.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9.]+(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('0s')",message="must be in hours, minutes and seconds: 24h, 2m30s, 90s, 0s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(0|([0-9.]+(ns|us|ms|s|m|h))+)$') || duration(self) <= duration('720h')",message="must be at most 720h"
	UndoPeriod *metav1.Duration `json:"undoPeriod,omitempty"`

	// Decision: Undecided, Confirmed or Undone. Default: Undecided.
	// +optional
	// +kubebuilder:default=Undecided
	Decision RollbackDecision `json:"decision,omitempty"`

	// Hold keeps GitSyncs, ApplicationInstallations and KubernetesApplications from changing the
	// objects that were rolled back until what they want for them changes. With false, they are put back
	// to what git or the installation wants as soon as the rollback has ended. Default: true.
	// +optional
	// +kubebuilder:default=true
	Hold *bool `json:"hold,omitempty"`
}

// RollbackPhase is the step that a rollback is at. It is recorded before the step is carried out.
// +kubebuilder:validation:Enum=Pending;Saving;Holding;ScalingDown;Restoring;Swapping;Applying;ScalingUp;Checking;Completed;Reverting;Reverted;Confirmed;Failed
type RollbackPhase string

// The phases of a rollback, in their order.
const (
	// RollbackPending: it is checked that the rollback can succeed.
	RollbackPending RollbackPhase = "Pending"
	// RollbackSaving: the safety snapshot is being taken.
	RollbackSaving RollbackPhase = "Saving"
	// RollbackHolding: objects are marked, so that no controller reverts them.
	RollbackHolding RollbackPhase = "Holding"
	// RollbackScalingDown: workloads are scaled to zero.
	RollbackScalingDown RollbackPhase = "ScalingDown"
	// RollbackRestoring: volumes are restored beside the old ones.
	RollbackRestoring RollbackPhase = "Restoring"
	// RollbackSwapping: they are put under the names of the claims.
	RollbackSwapping RollbackPhase = "Swapping"
	// RollbackApplying: the objects of the snapshot are applied.
	RollbackApplying RollbackPhase = "Applying"
	// RollbackScalingUp: workloads get their replicas back.
	RollbackScalingUp RollbackPhase = "ScalingUp"
	// RollbackChecking: the application is to become ready.
	RollbackChecking RollbackPhase = "Checking"
	// RollbackCompleted: the application is as in the snapshot, and the volumes of before are kept.
	RollbackCompleted RollbackPhase = "Completed"
	// RollbackReverting: the state of before is being restored, after a failure or on demand.
	RollbackReverting RollbackPhase = "Reverting"
	// RollbackReverted: the application is as it was before the rollback.
	RollbackReverted RollbackPhase = "Reverted"
	// RollbackFinal: the volumes of before are deleted.
	RollbackFinal RollbackPhase = "Confirmed"
	// RollbackFailed: neither state could be reached without help. The message says what is where.
	RollbackFailed RollbackPhase = "Failed"
)

// RollbackVolume is the volume of one claim in a rollback.
type RollbackVolume struct {
	// Claim is the name of the PersistentVolumeClaim.
	// +required
	Claim string `json:"claim"`

	// Before is the name of the PersistentVolume that the claim had.
	// +optional
	Before string `json:"before,omitempty"`

	// BeforePolicy is the reclaim policy that the volume of the claim has apart from the rollback. While
	// it runs, the policy is Retain. Empty once the volume of before has its policy back.
	// +optional
	BeforePolicy string `json:"beforePolicy,omitempty"`

	// Beside is the name of the claim that the volume is restored to, beside the old one.
	// +optional
	Beside string `json:"beside,omitempty"`

	// After is the name of the PersistentVolume that was restored.
	// +optional
	After string `json:"after,omitempty"`

	// Swapped is true once the claim is bound to the restored volume.
	// +optional
	Swapped bool `json:"swapped,omitempty"`
}

// HeldObject is an object that a rollback holds.
type HeldObject struct {
	ObjectReference `json:",inline"`

	// ReleaseRevision is the revision that a Helm release is rolled back to, if the object is an
	// ApplicationInstallation. It is set once the application is as in the snapshot: until then
	// nothing but the rollback changes it.
	// +optional
	ReleaseRevision int64 `json:"releaseRevision,omitempty"`
}

// ApplicationRollbackStatus is the observed state of a rollback.
type ApplicationRollbackStatus struct {
	ReconcileStatus `json:",inline"`

	// Phase is the step that the rollback is at.
	// +optional
	Phase RollbackPhase `json:"phase,omitempty"`

	// PhaseTime is when the phase began. Most phases have to end within a certain time.
	// +optional
	PhaseTime *metav1.Time `json:"phaseTime,omitempty"`

	// Error is why the rollback failed, or was reverted.
	// +optional
	Error *DataError `json:"error,omitempty"`

	// ApplicationName is the name of the Application that the StatefulApplication is of. Of those of one
	// Application, one rollback runs at a time.
	// +optional
	ApplicationName string `json:"applicationName,omitempty"`

	// ContentName is the name of the ApplicationSnapshotContent that the application is rolled back to.
	// +optional
	ContentName string `json:"contentName,omitempty"`

	// SafetySnapshot is the name of the ApplicationSnapshot of the state before.
	// +optional
	SafetySnapshot string `json:"safetySnapshot,omitempty"`

	// SafetySnapshotUID is the UID of that ApplicationSnapshot: another one of its name is not gone back to.
	// +optional
	SafetySnapshotUID string `json:"safetySnapshotUID,omitempty"`

	// Held lists the objects that are held: they are left as they are by those who deliver them. It is
	// recorded before an object is marked.
	// +optional
	// +listType=atomic
	Held []HeldObject `json:"held,omitempty"`

	// Scaled lists the workloads that were scaled to zero.
	// +optional
	// +listType=atomic
	Scaled []ScaledWorkload `json:"scaled,omitempty"`

	// Volumes of the application, by claim.
	// +optional
	// +listType=atomic
	Volumes []RollbackVolume `json:"volumes,omitempty"`

	// Left lists objects and claims of the application that the snapshot does not have. They are left as
	// they are.
	// +optional
	// +listType=atomic
	Left []ObjectReference `json:"left,omitempty"`

	// SourceBefore is what the StatefulApplication had been restored from, or rolled back to, before.
	// +optional
	SourceBefore *RestoredFrom `json:"sourceBefore,omitempty"`

	// CompletionTime is when the application was as in the snapshot; undoPeriod counts from then.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// ApplicationRollback takes an application back to a snapshot, in place.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=waybill,shortName=approll
// +kubebuilder:printcolumn:name="Application",type=string,JSONPath=`.spec.applicationName`
// +kubebuilder:printcolumn:name="Snapshot",type=string,JSONPath=`.spec.source.snapshotRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type ApplicationRollback struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the rollback.
	Spec ApplicationRollbackSpec `json:"spec"`

	// Status reports how far it is.
	// +kubebuilder:default={"observedGeneration":-1}
	Status ApplicationRollbackStatus `json:"status,omitempty"`
}

// ApplicationRollbackList is a list of ApplicationRollbacks.
// +kubebuilder:object:root=true
type ApplicationRollbackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApplicationRollback `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (a *ApplicationRollback) GetReconcileStatus() *ReconcileStatus { return &a.Status.ReconcileStatus }

// GetConditions returns the conditions of the status.
func (a *ApplicationRollback) GetConditions() []metav1.Condition { return a.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (a *ApplicationRollback) SetConditions(c []metav1.Condition) { a.Status.Conditions = c }

// GetUndoPeriod returns how long the volumes of before are kept.
func (a *ApplicationRollback) GetUndoPeriod() time.Duration {
	if a.Spec.UndoPeriod == nil {
		return 24 * time.Hour
	}
	return a.Spec.UndoPeriod.Duration
}
