package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HookActionKind is the kind of a HookAction.
const HookActionKind = "HookAction"

// HookErrorPolicy says what follows when a command fails.
// +kubebuilder:validation:Enum=Fail;Continue
type HookErrorPolicy string

const (
	// HookErrorFail fails the operation that the hook belongs to.
	HookErrorFail HookErrorPolicy = "Fail"

	// HookErrorContinue goes on as if the command had succeeded; the status of the ExecutionHook says
	// that it failed.
	HookErrorContinue HookErrorPolicy = "Continue"
)

// HookActionSpec describes a command for containers.
type HookActionSpec struct {
	// Action that is carried out.
	// +required
	Action HookHandler `json:"action"`

	// Timeout of the command in each container. The connection is closed then, and the command has
	// failed; Kubernetes does not end the process. Default: 30s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9.]+(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be between 1s and 1h, in hours, minutes and seconds: 1h, 2m30s, 90s"
	Timeout metav1.Duration `json:"timeout,omitzero"`

	// OnError says what follows when the command exits with another code than 0, or takes longer
	// than the timeout: Fail or Continue. Default: Fail.
	// +optional
	// +kubebuilder:default=Fail
	OnError HookErrorPolicy `json:"onError,omitempty"`
}

// HookHandler is what a HookAction does.
type HookHandler struct {
	// Exec runs a command in a container.
	// +required
	Exec ExecAction `json:"exec"`
}

// ExecAction is a command, as in a probe of a container.
type ExecAction struct {
	// Command and its arguments. It is not run in a shell; name one where it needs one. A pre-hook
	// may print `{"tags": {"KEY": "VALUE"}}` as its only output: the tags become those of the
	// snapshot.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=16384
	Command []string `json:"command"`
}

// HookAction is a command that applications are quiesced or released with.
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=waybill
// +kubebuilder:printcolumn:name="Timeout",type=string,JSONPath=`.spec.timeout`
// +kubebuilder:printcolumn:name="On-Error",type=string,JSONPath=`.spec.onError`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HookAction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the command.
	Spec HookActionSpec `json:"spec"`
}

// HookActionList is a list of HookActions.
// +kubebuilder:object:root=true
type HookActionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HookAction `json:"items"`
}

// GetTimeout returns the timeout of the command in each container.
func (h *HookAction) GetTimeout() time.Duration { return durationOr(h.Spec.Timeout, 30*time.Second) }
