package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// UpgradeSnapshot is the ApplicationSnapshot that was taken before an upgrade.
type UpgradeSnapshot struct {
	// Name of the ApplicationSnapshot, in the target namespace.
	// +required
	Name string `json:"name"`

	// UID of it.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// SnapshotClassName is its ApplicationSnapshotClass.
	// +required
	SnapshotClassName string `json:"snapshotClassName"`

	// ApplicationName is the StatefulApplication that it is of.
	// +required
	ApplicationName string `json:"applicationName"`

	// Revision of the Helm release that was deployed then.
	// +optional
	Revision int64 `json:"revision,omitempty"`
}

// UpgradeRollbackPhase is the step that going back from a failed upgrade is at. It is recorded before the
// step is carried out.
// +kubebuilder:validation:Enum=Restoring;Returning;Completed;Failed
type UpgradeRollbackPhase string

// The phases of going back from a failed upgrade, in their order.
const (
	// UpgradeRollbackRestoring: an ApplicationRollback puts the data and the objects of the snapshot back.
	UpgradeRollbackRestoring UpgradeRollbackPhase = "Restoring"
	// UpgradeRollbackReturning: they are back, and the Helm release goes back to the revision that they are of.
	UpgradeRollbackReturning UpgradeRollbackPhase = "Returning"
	// UpgradeRollbackCompleted: both are as before the upgrade.
	UpgradeRollbackCompleted UpgradeRollbackPhase = "Completed"
	// UpgradeRollbackFailed: the ApplicationRollback could not do it. The snapshot is kept.
	UpgradeRollbackFailed UpgradeRollbackPhase = "Failed"
)

// UpgradeRollback is how an installation goes back from an upgrade that failed, with its data.
type UpgradeRollback struct {
	// Phase is the step that it is at.
	// +required
	Phase UpgradeRollbackPhase `json:"phase"`

	// Name of the ApplicationRollback, in the target namespace.
	// +required
	Name string `json:"name"`

	// UID of it; empty before it was created.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// Snapshot from before the upgrade.
	// +required
	Snapshot UpgradeSnapshot `json:"snapshot"`

	// Reason and Message say why the upgrade failed.
	// +required
	Reason string `json:"reason"`
	// +optional
	Message string `json:"message,omitempty"`

	// Outcome is what the ApplicationRollback has come to: its phase, or why it failed.
	// +optional
	Outcome string `json:"outcome,omitempty"`
}

// Ended reports whether nothing is left to be done about it.
func (u *UpgradeRollback) Ended() bool {
	return u.Phase == UpgradeRollbackCompleted || u.Phase == UpgradeRollbackFailed
}
