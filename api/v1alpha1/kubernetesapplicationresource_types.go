package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubernetesApplicationResourceKind is the kind of a KubernetesApplicationResource.
const KubernetesApplicationResourceKind = "KubernetesApplicationResource"

// KubernetesApplicationResourceSpec defines an object and the cluster that it is delivered to.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterName) || size(oldSelf.clusterName) == 0 || (has(self.clusterName) && self.clusterName == oldSelf.clusterName)",message="clusterName is immutable once it is set"
type KubernetesApplicationResourceSpec struct {
	// ClusterName is the KubernetesCluster in the same namespace that the object is delivered to:
	// that of the application. Nothing is done while it is empty. Immutable once set.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterName string `json:"clusterName,omitempty"`

	// Template is the manifest of the object; apiVersion, kind, metadata.name and
	// metadata.namespace are immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.apiVersion == oldSelf.apiVersion && self.kind == oldSelf.kind && self.metadata.name == oldSelf.metadata.name && (has(self.metadata.__namespace__) ? self.metadata.__namespace__ : "") == (has(oldSelf.metadata.__namespace__) ? oldSelf.metadata.__namespace__ : "")`,message="apiVersion, kind, metadata.name and metadata.namespace of a template are immutable: a change would orphan the object"
	Template ObjectTemplate `json:"template"`

	// Secrets of this namespace that are copied into the namespace of the object, each under
	// the name `<name of this resource>-<name of the Secret>`.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Secrets []ResourceSecretReference `json:"secrets,omitempty"`
}

// ResourceSecretReference names a Secret in the namespace of the resource.
type ResourceSecretReference struct {
	// Name of the Secret; at most 189 characters, so that the name of its copy fits.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=189
	Name string `json:"name"`
}

// KubernetesApplicationResourceStatus reports what was delivered to the cluster.
type KubernetesApplicationResourceStatus struct {
	ReconcileStatus `json:",inline"`

	// State of the resource in one word; never PartiallySubmitted.
	// +optional
	State ApplicationState `json:"state,omitempty"`

	// Namespace of the object in the cluster; empty for cluster-scoped kinds.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Remote is the status of the object, verbatim. Absent if the object has none, or if
	// it is larger than 64 KiB.
	// +optional
	Remote *apiextensionsv1.JSON `json:"remote,omitempty"`

	// Inventory of what was delivered: the object and its Secrets.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`

	// Held lists, at most 500, the objects that an ApplicationRollback holds: they are left as they are
	// until what is wanted of them changes, or the hold ends.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Held []Hold `json:"held,omitempty"`
}

// KubernetesApplicationResource is one object of any kind in a user cluster, together with the
// Secrets that it needs and its status.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=waybill,shortName=kar
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name may have at most 63 characters: it is part of the names of Secrets"
// +kubebuilder:printcolumn:name="Template-Kind",type=string,JSONPath=`.spec.template.kind`
// +kubebuilder:printcolumn:name="Template-Name",type=string,JSONPath=`.spec.template.metadata.name`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Template-Namespace",type=string,JSONPath=`.status.namespace`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
type KubernetesApplicationResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the object and its cluster.
	Spec KubernetesApplicationResourceSpec `json:"spec"`

	// Status reports what was delivered.
	// +kubebuilder:default={"observedGeneration":-1,"state":"Pending"}
	Status KubernetesApplicationResourceStatus `json:"status,omitempty"`
}

// KubernetesApplicationResourceList is a list of KubernetesApplicationResources.
// +kubebuilder:object:root=true
type KubernetesApplicationResourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubernetesApplicationResource `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (r *KubernetesApplicationResource) GetReconcileStatus() *ReconcileStatus {
	return &r.Status.ReconcileStatus
}

// GetConditions returns the conditions of the status.
func (r *KubernetesApplicationResource) GetConditions() []metav1.Condition {
	return r.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (r *KubernetesApplicationResource) SetConditions(c []metav1.Condition) {
	r.Status.Conditions = c
}

// IsSubmitted reports whether the cluster holds the object as currently templated.
func (r *KubernetesApplicationResource) IsSubmitted() bool {
	return r.Status.State == StateSubmitted && r.Status.ObservedGeneration == r.Generation
}

// PropagatedSecretName returns the name of the copy of a Secret in the user cluster.
func (r *KubernetesApplicationResource) PropagatedSecretName(secret string) string {
	return r.Name + "-" + secret
}
