package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ExecutionHookKind is the kind of an ExecutionHook.
const ExecutionHookKind = "ExecutionHook"

// ExecutionHookSpec describes one run of a HookAction.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: an ExecutionHook is one run; create another one"
type ExecutionHookSpec struct {
	// ActionName is the name of the HookAction, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ActionName string `json:"actionName"`

	// Action is what is run, in place of what the HookAction says then: it does not have to exist.
	// +optional
	Action *HookActionSpec `json:"action,omitempty"`

	// Pods that the command runs in, one after the other.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	Pods []HookPod `json:"pods"`
}

// HookPod is a Pod that a command runs in.
type HookPod struct {
	// Name of the Pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// UID of the Pod. If set, the command runs in no other Pod of that name.
	// +optional
	UID string `json:"uid,omitempty"`

	// Container of the Pod. Default: the first.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`
}

// HookRunState is how far a command is in one container.
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Interrupted;Unknown
type HookRunState string

const (
	// HookRunPending: the command has not been started.
	HookRunPending HookRunState = "Pending"

	// HookRunRunning: the command is about to be started, or runs. This is recorded before it is
	// started.
	HookRunRunning HookRunState = "Running"

	// HookRunSucceeded: the command exited with code 0.
	HookRunSucceeded HookRunState = "Succeeded"

	// HookRunFailed: the command exited with another code, took longer than its timeout, or its
	// container is not there.
	HookRunFailed HookRunState = "Failed"

	// HookRunInterrupted: waybill-sync ended while the command ran. It is not known how it ended; it is
	// not run again.
	HookRunInterrupted HookRunState = "Interrupted"

	// HookRunUnknown: it is not known whether the command ran, because the API server or the node
	// refused or broke the connection. A post-hook of a snapshot is run again.
	HookRunUnknown HookRunState = "Unknown"
)

// HookRun is the state of a command in one container.
type HookRun struct {
	// Pod that the command runs in.
	// +required
	Pod string `json:"pod"`

	// PodUID is the UID of the Pod when the command was started.
	// +optional
	PodUID string `json:"podUID,omitempty"`

	// Container that the command runs in.
	// +optional
	Container string `json:"container,omitempty"`

	// State of the command.
	// +required
	State HookRunState `json:"state"`

	// StartTime is when the command was started.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// CompletionTime is when the command had ended.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`

	// ExitCode of the command, if it exited.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// Message says why the command failed, with the end of what it wrote to standard error.
	// +optional
	Message string `json:"message,omitempty"`
}

// ExecutionHookStatus is the observed state of an ExecutionHook.
type ExecutionHookStatus struct {
	ReconcileStatus `json:",inline"`

	// Runs of the command, one for each Pod of the spec, in its order.
	// +optional
	// +listType=atomic
	Runs []HookRun `json:"runs,omitempty"`

	// Tags that the commands printed.
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
}

// ExecutionHook runs a HookAction once, in some Pods of its namespace.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=waybill
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.actionName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type ExecutionHook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the run.
	Spec ExecutionHookSpec `json:"spec"`

	// Status reports how it went.
	// +kubebuilder:default={"observedGeneration":-1}
	Status ExecutionHookStatus `json:"status,omitempty"`
}

// ExecutionHookList is a list of ExecutionHooks.
// +kubebuilder:object:root=true
type ExecutionHookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ExecutionHook `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (e *ExecutionHook) GetReconcileStatus() *ReconcileStatus { return &e.Status.ReconcileStatus }

// GetConditions returns the conditions of the status.
func (e *ExecutionHook) GetConditions() []metav1.Condition { return e.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (e *ExecutionHook) SetConditions(c []metav1.Condition) { e.Status.Conditions = c }
