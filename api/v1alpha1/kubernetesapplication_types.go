package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubernetesApplicationKind is the kind of a KubernetesApplication.
const KubernetesApplicationKind = "KubernetesApplication"

// MaxResourceTemplates is the maximum number of resource templates of a KubernetesApplication.
const MaxResourceTemplates = 200

// KubernetesApplicationSpec defines what to run and which clusters it may run in.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterName) || size(oldSelf.clusterName) == 0 || (has(self.clusterName) && self.clusterName == oldSelf.clusterName)",message="clusterName is immutable once it is set: delete and recreate the application to move it"
type KubernetesApplicationSpec struct {
	// ClusterSelector selects the KubernetesClusters in the application's namespace that the
	// application may be scheduled to; `{}` selects all of them. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterSelector is immutable: delete and recreate the application to move it"
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector"`

	// ClusterName is the KubernetesCluster that the application runs in. The scheduler sets it
	// once, like the nodeName of a Pod; setting it yourself bypasses the scheduler. Immutable once
	// set.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterName string `json:"clusterName,omitempty"`

	// ResourceTemplates are the resources of the application, in no particular order. A
	// KubernetesApplicationResource is created from each. Names are unique; apiVersion, kind,
	// metadata.name and metadata.namespace of the manifest under a name are immutable.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:XValidation:rule="[self.map(t, t.metadata.name)].all(names, names.all(name, names.indexOf(name) == names.lastIndexOf(name)))",message="names of resource templates must be unique"
	// +kubebuilder:validation:XValidation:rule="[oldSelf.map(o, o.metadata.name)].all(names, self.all(t, !(t.metadata.name in names) || oldSelf[names.indexOf(t.metadata.name)].spec.template.apiVersion == t.spec.template.apiVersion && oldSelf[names.indexOf(t.metadata.name)].spec.template.kind == t.spec.template.kind))",message="apiVersion and kind of a template are immutable: a change would orphan the object; give the resource template another name"
	// +kubebuilder:validation:XValidation:rule=`[oldSelf.map(o, o.metadata.name)].all(names, self.all(t, !(t.metadata.name in names) || [oldSelf[names.indexOf(t.metadata.name)]].all(o, o.spec.template.metadata.name == t.spec.template.metadata.name && (has(o.spec.template.metadata.__namespace__) ? o.spec.template.metadata.__namespace__ : "") == (has(t.spec.template.metadata.__namespace__) ? t.spec.template.metadata.__namespace__ : ""))))`,message="metadata.name and metadata.namespace of a template are immutable: a change would orphan the object; give the resource template another name"
	ResourceTemplates []ResourceTemplate `json:"resourceTemplates"`
}

// ResourceTemplate is the template of one KubernetesApplicationResource.
type ResourceTemplate struct {
	// Metadata of the KubernetesApplicationResource.
	// +required
	Metadata ResourceTemplateMetadata `json:"metadata"`

	// Spec of the KubernetesApplicationResource.
	// +required
	Spec ResourceTemplateSpec `json:"spec"`
}

// ResourceTemplateMetadata is the part of the metadata that a template sets.
type ResourceTemplateMetadata struct {
	// Name of the KubernetesApplicationResource, unique within its namespace.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Namespace is ignored: a KubernetesApplicationResource is always created in the
	// namespace of its application.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Labels of the KubernetesApplicationResource.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the KubernetesApplicationResource.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ResourceTemplateSpec is the part of a KubernetesApplicationResource's spec that a template
// sets.
type ResourceTemplateSpec struct {
	// Template is the manifest of the object.
	// +required
	Template ObjectTemplate `json:"template"`

	// Secrets that the object needs; see KubernetesApplicationResource.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Secrets []ResourceSecretReference `json:"secrets,omitempty"`
}

// ApplicationState is the state of a KubernetesApplication, or of one of its resources, in one
// word. It is derived from the conditions, which give more detail.
// +kubebuilder:validation:Enum=Pending;Scheduled;PartiallySubmitted;Submitted;Failed;Deleting
type ApplicationState string

const (
	// StatePending: no cluster has been found yet.
	StatePending ApplicationState = "Pending"

	// StateScheduled: there is a cluster, but nothing has been submitted to it yet.
	StateScheduled ApplicationState = "Scheduled"

	// StatePartiallySubmitted: some templates were submitted; others failed or are still to come. A KubernetesApplicationResource is never in this state.
	StatePartiallySubmitted ApplicationState = "PartiallySubmitted"

	// StateSubmitted: the cluster holds what the template, or every one of the templates,
	// specifies.
	StateSubmitted ApplicationState = "Submitted"

	// StateFailed: nothing was submitted, or the cluster no longer exists; the conditions say why.
	StateFailed ApplicationState = "Failed"

	// StateDeleting: it is being deleted, and not all delivered objects are gone yet.
	StateDeleting ApplicationState = "Deleting"
)

// KubernetesApplicationStatus reports where an application runs and how far it has got.
type KubernetesApplicationStatus struct {
	ReconcileStatus `json:",inline"`

	// State of the application in one word: Pending until a cluster is chosen, Scheduled until the
	// first resource is there, PartiallySubmitted, Submitted, Failed, Deleting.
	// +optional
	State ApplicationState `json:"state,omitempty"`

	// Cluster is the name of the KubernetesCluster that the application is scheduled to:
	// spec.clusterName as last acted on.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// ConsideredCluster is the first KubernetesCluster, by name, of which condition Scheduled says why the application does not fit
	// there; empty if a cluster is chosen, or no cluster was considered. Where several waybill-syncs serve the clusters of a
	// namespace, the others take from it that the report is of a cluster that the selector still matches.
	// +optional
	ConsideredCluster string `json:"consideredCluster,omitempty"`

	// DesiredResources is the number of resource templates.
	// +optional
	DesiredResources int32 `json:"desiredResources"`

	// SubmittedResources is the number of resource templates that the cluster holds in their
	// current form.
	// +optional
	SubmittedResources int32 `json:"submittedResources"`
}

// KubernetesApplication is a set of Kubernetes resources that is scheduled as a unit to exactly one
// user cluster, and kept there as templated.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=waybill,shortName=ka
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name may have at most 63 characters"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.cluster`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredResources`
// +kubebuilder:printcolumn:name="Submitted",type=integer,JSONPath=`.status.submittedResources`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
type KubernetesApplication struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines what to run and where it may run.
	Spec KubernetesApplicationSpec `json:"spec"`

	// Status reports where it runs and how far it has got.
	// +kubebuilder:default={"observedGeneration":-1,"state":"Pending","desiredResources":0,"submittedResources":0}
	Status KubernetesApplicationStatus `json:"status,omitempty"`
}

// KubernetesApplicationList is a list of KubernetesApplications.
// +kubebuilder:object:root=true
type KubernetesApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubernetesApplication `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (a *KubernetesApplication) GetReconcileStatus() *ReconcileStatus {
	return &a.Status.ReconcileStatus
}

// GetConditions returns the conditions of the status.
func (a *KubernetesApplication) GetConditions() []metav1.Condition { return a.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (a *KubernetesApplication) SetConditions(c []metav1.Condition) { a.Status.Conditions = c }
