package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SnapshotVolume is the volume of one claim in a snapshot.
type SnapshotVolume struct {
	// Claim is the name of the PersistentVolumeClaim.
	// +required
	Claim string `json:"claim"`

	// ClassName is the name of the VolumeSnapshotClass or, with VolumeGroupSnapshot, of the
	// VolumeGroupSnapshotClass.
	// +optional
	ClassName string `json:"className,omitempty"`

	// VolumeSnapshot is the name of the VolumeSnapshot, in the namespace of the snapshot. It is
	// recorded before the VolumeSnapshot, or its VolumeGroupSnapshot, is created.
	// +optional
	VolumeSnapshot string `json:"volumeSnapshot,omitempty"`

	// VolumeGroupSnapshot is the name of the VolumeGroupSnapshot that the VolumeSnapshot comes from.
	// +optional
	VolumeGroupSnapshot string `json:"volumeGroupSnapshot,omitempty"`

	// Cut is true once the driver has taken the snapshot, ready to use or not.
	// +optional
	Cut bool `json:"cut,omitempty"`

	// Ready is true once a volume can be made from the snapshot.
	// +optional
	Ready bool `json:"ready,omitempty"`

	// Size of a volume that is made from the snapshot, in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`
}

// QuiescedContainer is a container that a pre-hook runs in.
type QuiescedContainer struct {
	HookPod `json:",inline"`

	// Restarts of the container before the hook ran. What has restarted since is not quiesced any more.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
}

// SnapshotPlan is what the class of a snapshot said when the snapshot was begun. What becomes of the
// class afterwards makes no difference.
type SnapshotPlan struct {
	// ApplicationName is the name of the Application.
	// +required
	ApplicationName string `json:"applicationName"`

	// Quiesce says how the application is brought to rest.
	// +optional
	Quiesce QuiesceMethod `json:"quiesce,omitempty"`

	// PreHooks run before the volumes are cut.
	// +optional
	// +listType=atomic
	PreHooks []HookSpec `json:"preHooks,omitempty"`

	// PostHooks run after the volumes are cut.
	// +optional
	// +listType=atomic
	PostHooks []HookSpec `json:"postHooks,omitempty"`

	// PostActions are the HookActions of the post-hooks as they were before the first pre-hook, until the
	// application is released. What becomes of them meanwhile makes no difference.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	PostActions []PlannedAction `json:"postActions,omitempty"`

	// Metadata says where the definitions are stored.
	// +optional
	Metadata MetadataHandleType `json:"metadataType,omitempty"`

	// DeletionPolicy of the content.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// PlannedAction is a HookAction as it was when the snapshot was begun.
type PlannedAction struct {
	// Name of the HookAction.
	// +required
	Name string `json:"name"`

	// Action that is carried out.
	// +required
	Action HookHandler `json:"action"`

	// Timeout of the command in each container.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9.]+(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be between 1s and 1h, in hours, minutes and seconds: 1h, 2m30s, 90s"
	Timeout metav1.Duration `json:"timeout,omitzero"`

	// OnError says what follows when the command fails.
	// +optional
	OnError HookErrorPolicy `json:"onError,omitempty"`
}

// QuiescedHook is a pre-hook that may have quiesced containers: its post-hook has to run, whatever
// else happens.
type QuiescedHook struct {
	// Name of the pre-hook in the class.
	// +required
	Name string `json:"name"`

	// ExecutionHook that runs it.
	// +required
	ExecutionHook string `json:"executionHook"`

	// UID of the ExecutionHook, once it has been created: the hook does not run a second time.
	// +optional
	UID string `json:"uid,omitempty"`

	// Containers that the hook runs in.
	// +optional
	// +listType=atomic
	Containers []QuiescedContainer `json:"containers,omitempty"`

	// Released is true once its post-hook has ended, or nothing is left to be released.
	// +optional
	Released bool `json:"released,omitempty"`
}

// ScaledWorkload is a workload that is scaled to zero for a while.
type ScaledWorkload struct {
	ObjectReference `json:",inline"`

	// Replicas that it had, and gets back.
	// +required
	Replicas int32 `json:"replicas"`

	// Released is true once it has its replicas back.
	// +optional
	Released bool `json:"released,omitempty"`
}
