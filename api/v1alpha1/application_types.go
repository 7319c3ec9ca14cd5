package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ApplicationKind is the kind of an Application.
const ApplicationKind = "Application"

// Ownership defines whether an Application owns its components.
// +kubebuilder:validation:Enum=Own;Observe
type Ownership string

const (
	// OwnershipOwn sets an ownerReference on components: they are deleted with the Application.
	OwnershipOwn Ownership = "Own"

	// OwnershipObserve reports components and marks them as the Application's by annotation and
	// label. They get no ownerReference, and stay when the Application is deleted.
	OwnershipObserve Ownership = "Observe"
)

// ApplicationSpec describes what an application is made of.
type ApplicationSpec struct {
	// Type of the application, e.g. WordPress, MySQL.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Type string `json:"type"`

	// Components that the application is made of.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	Components []ApplicationComponent `json:"components,omitempty"`

	// Dependencies are the names of other Applications in the same namespace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Dependencies []string `json:"dependencies,omitempty"`

	// Selector that the labels of the components match. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="selector is immutable: a change would orphan components; create a new Application instead"
	Selector *metav1.LabelSelector `json:"selector"`

	// HealthCheck is an application-level health check.
	// +optional
	HealthCheck *ApplicationHealthCheck `json:"healthCheck,omitempty"`

	// HealthExpressions define in CEL when objects of a kind are healthy. They see metadata, spec
	// and status, never data.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=50
	HealthExpressions []HealthExpression `json:"healthExpressions,omitempty"`

	// Ownership of the components: Own or Observe. Default: Own.
	// +optional
	// +kubebuilder:default=Own
	Ownership Ownership `json:"ownership,omitempty"`

	// Version of the application.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`

	// AboutURL links to more information about the application.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	AboutURL string `json:"url,omitempty"`

	// Description is a sentence or two about the application.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`

	// Maintainers of the application.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Maintainers []string `json:"maintainers,omitempty"`

	// Keywords of the application.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Keywords []string `json:"keywords,omitempty"`

	// LicenseURL links to the licence of the application.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	LicenseURL string `json:"license,omitempty"`

	// DashboardURL links to the dashboard of the application.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	DashboardURL string `json:"dashboard,omitempty"`
}

// ApplicationComponent is one object, or every selected object of a kind.
type ApplicationComponent struct {
	// Name of the object, which must then exist. If empty, every selected object of the kind.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Group of the kind; empty for the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// Version is a hint for readers; components match by group and kind.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`

	// Kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
}

// ApplicationHealthCheck is a Pod whose readiness stands for that of the application.
type ApplicationHealthCheck struct {
	// Template of the Pod, with a readinessProbe on a container.
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template runtime.RawExtension `json:"template"`
}

// HealthExpression defines in CEL when objects of one kind are healthy.
type HealthExpression struct {
	// Group of the kind; empty for the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// Kind that the expressions apply to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Current is true when the object is healthy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Current string `json:"current"`

	// Failed is true when the object will not become healthy on its own.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failed string `json:"failed,omitempty"`
}

// ComponentStatus is the state of a component or of a dependency.
type ComponentStatus struct {
	// Group of the kind; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the object.
	// +required
	Kind string `json:"kind"`

	// Name of the object; empty for a kind without a selected object.
	// +optional
	Name string `json:"name,omitempty"`

	// Installed is true if the object exists and belongs to the Application.
	// +required
	Installed bool `json:"installed"`

	// Owned is true if the object has an ownerReference to the Application.
	// +optional
	Owned bool `json:"owned,omitempty"`

	// Health as kstatus reports it: Current, InProgress, Failed, Terminating, NotFound, Unknown.
	// +optional
	Health string `json:"health,omitempty"`

	// Message explains what is wrong, for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// ApplicationStatus reports which parts of an application exist and whether it works.
type ApplicationStatus struct {
	ReconcileStatus `json:",inline"`

	// Installed lists what exists: components as `<kind>.<group>/<name>`, dependencies as
	// `Application/<name>`.
	// +optional
	// +listType=atomic
	Installed []string `json:"installed,omitempty"`

	// Ready mirrors the readiness of the health-check Pod; Unknown without one.
	// +optional
	// +kubebuilder:validation:Enum=True;False;Unknown
	Ready metav1.ConditionStatus `json:"ready,omitempty"`

	// ComponentsReady is `<healthy>/<all>`, for the printed column.
	// +optional
	ComponentsReady string `json:"componentsReady,omitempty"`

	// Components of the application.
	// +optional
	// +listType=atomic
	Components []ComponentStatus `json:"components,omitempty"`

	// Dependencies of the application.
	// +optional
	// +listType=atomic
	Dependencies []ComponentStatus `json:"dependencies,omitempty"`
}

// Application groups the objects that make up an application, owns or observes them, and reports
// whether they exist and work.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=waybill
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Components",type=string,JSONPath=`.status.componentsReady`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Health-Check",type=string,JSONPath=`.status.ready`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type Application struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes what the application is made of.
	Spec ApplicationSpec `json:"spec"`

	// Status reports which parts of it exist and whether it works.
	// +kubebuilder:default={"observedGeneration":-1}
	Status ApplicationStatus `json:"status,omitempty"`
}

// ApplicationList is a list of Applications.
// +kubebuilder:object:root=true
type ApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Application `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (a *Application) GetReconcileStatus() *ReconcileStatus { return &a.Status.ReconcileStatus }

// GetConditions returns the conditions of the status.
func (a *Application) GetConditions() []metav1.Condition { return a.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (a *Application) SetConditions(c []metav1.Condition) { a.Status.Conditions = c }
