package v1alpha1

// Reasons of ExecutionHook.
const (
	// HookActionNotFoundReason: the HookAction that the spec names does not exist.
	HookActionNotFoundReason = "HookActionNotFound"

	// HookFailedReason: the command failed in a container, and onError of its HookAction is Fail.
	HookFailedReason = "HookFailed"

	// HookInterruptedReason: waybill-sync ended while the command ran. It is not known whether it
	// succeeded; it is not run again.
	HookInterruptedReason = "HookInterrupted"
)

// Reasons of ApplicationSnapshot and ApplicationSnapshotContent.
const (
	// ClassNotFoundReason: the class that the spec names does not exist, or none, or more than one, is
	// the default.
	ClassNotFoundReason = "ClassNotFound"

	// ApplicationNotFoundReason: the StatefulApplication, or its Application, does not exist.
	ApplicationNotFoundReason = "ApplicationNotFound"

	// VolumeNotSupportedReason: a claim is not bound, or no snapshot can be taken of its volume.
	VolumeNotSupportedReason = "VolumeNotSupported"

	// MetadataFailedReason: the definitions of the objects cannot be stored, or not be read again.
	MetadataFailedReason = "MetadataFailed"

	// HookTargetInvalidReason: a hook selects no running container, or two hooks select the same.
	HookTargetInvalidReason = "HookTargetInvalid"

	// PostHookFailedReason: a post-hook failed, so that the application may still be quiesced.
	PostHookFailedReason = "PostHookFailed"

	// NotQuiescedReason: the application did not come to rest, or not for as long as it took to cut
	// the volumes.
	NotQuiescedReason = "NotQuiesced"

	// VolumeSnapshotFailedReason: a VolumeSnapshot failed, was deleted, or took too long.
	VolumeSnapshotFailedReason = "VolumeSnapshotFailed"

	// ContentConflictReason: the content cannot be bound to the snapshot.
	ContentConflictReason = "ContentConflict"

	// SnapshotDeletedReason: the snapshot was deleted before it was ready.
	SnapshotDeletedReason = "SnapshotDeleted"
)

// Reasons of ApplicationRollback.
const (
	// RollbackRefusedReason: the rollback cannot succeed, and nothing was changed.
	RollbackRefusedReason = "RollbackRefused"

	// RollbackWaitsReason: something else has to end first: another rollback of the application, its
	// restore, a snapshot that is being taken, or a claim that is being resized.
	RollbackWaitsReason = "RollbackWaits"

	// SafetySnapshotFailedReason: no snapshot of the state before could be taken, and nothing was changed.
	SafetySnapshotFailedReason = "SafetySnapshotFailed"

	// RollbackTimeoutReason: a phase took too long.
	RollbackTimeoutReason = "RollbackTimeout"

	// RollbackDeletedReason: the ApplicationRollback was deleted before it was completed.
	RollbackDeletedReason = "RollbackDeleted"

	// RollbackErrorReason: a phase failed.
	RollbackErrorReason = "RollbackError"

	// RollbackRevertedReason: the rollback failed, and the application is as it was before.
	RollbackRevertedReason = "RollbackReverted"

	// RollbackFailedReason: the rollback failed, and so did going back. The message says what is where.
	RollbackFailedReason = "RollbackFailed"

	// UndoRefusedReason: the rollback can no longer be undone.
	UndoRefusedReason = "UndoRefused"
)
