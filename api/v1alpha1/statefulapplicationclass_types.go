package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StatefulApplicationClassKind is the kind of a StatefulApplicationClass.
const StatefulApplicationClassKind = "StatefulApplicationClass"

// StatefulApplicationClass says how applications are restored.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=waybill,shortName=sappclass
// +kubebuilder:printcolumn:name="Handler",type=string,JSONPath=`.handler`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StatefulApplicationClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Handler is the name of the controller that restores applications of this class. Waybill's is
	// data.waybill.dev; applications of other classes are left alone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Handler string `json:"handler"`

	// Parameters for other handlers. Waybill's has none, and refuses any.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Parameters map[string]string `json:"parameters,omitempty"`

	// StorageClassMapping maps names of StorageClasses in a snapshot to those of this cluster, for
	// StorageClasses that this cluster does not have.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	StorageClassMapping map[string]string `json:"storageClassMapping,omitempty"`
}

// StatefulApplicationClassList is a list of StatefulApplicationClasses.
// +kubebuilder:object:root=true
type StatefulApplicationClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StatefulApplicationClass `json:"items"`
}
