package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// KubernetesClusterKind is the kind of a KubernetesCluster.
const KubernetesClusterKind = "KubernetesCluster"

// DeletePolicy defines what happens to the workloads in a cluster when its KubernetesCluster is
// deleted.
// +kubebuilder:validation:Enum=Wait;Abandon
type DeletePolicy string

const (
	// DeleteWait holds the KubernetesCluster until nothing that Waybill delivered is
	// left in the cluster.
	DeleteWait DeletePolicy = "Wait"

	// DeleteAbandon deletes the KubernetesCluster at once; workloads in the cluster stay.
	DeleteAbandon DeletePolicy = "Abandon"
)

// ClusterRole defines what a KubernetesCluster is to the hub.
// +kubebuilder:validation:Enum=User;Seed
type ClusterRole string

const (
	// ClusterRoleUser is a cluster that the hub drives: applications are installed in it from here.
	ClusterRoleUser ClusterRole = "User"

	// ClusterRoleSeed is a hub of its own, which drives user clusters of its own. It gets a copy of each
	// ApplicationDefinition, and of each Secret that is a source credential.
	ClusterRoleSeed ClusterRole = "Seed"
)

// KubernetesClusterSpec defines how to reach a cluster, and what it is.
// +kubebuilder:validation:XValidation:rule="!has(self.agent) || has(self.kubeconfigSecretRef)",message="agent needs kubeconfigSecretRef: the cluster that this object lives in has the chart of the hub itself"
// +kubebuilder:validation:XValidation:rule="!has(self.agent) || !has(self.role) || self.role != 'Seed'",message="agent is for clusters with role User: a seed runs a chart of its own"
type KubernetesClusterSpec struct {
	// Role of the cluster. User is a cluster that Waybill drives from here. Seed is one where Waybill runs as a
	// hub, for user clusters of its own: it gets the catalog and its credentials, and nothing is installed in
	// it from here. Seeds are in the system namespace. Immutable. Default: User.
	// +optional
	// +kubebuilder:default=User
	Role ClusterRole `json:"role,omitempty"`

	// KubeconfigSecretRef names a Secret in the same namespace that holds a kubeconfig with inline
	// data only. Default: the cluster that this object lives in.
	// +optional
	KubeconfigSecretRef *SecretKeyReference `json:"kubeconfigSecretRef,omitempty"`

	// Paused stops everything that Waybill does in this cluster; workloads keep running. Default:
	// false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// OnDelete defines what happens to the workloads in the cluster when this object is deleted.
	// Wait holds this object until nothing that Waybill delivered is left in the cluster; Abandon
	// lets it go at once, and the workloads stay. Default: Wait.
	// +optional
	// +kubebuilder:default=Wait
	OnDelete DeletePolicy `json:"onDelete,omitempty"`

	// Agent has Waybill's own share of the cluster installed and upgraded from here: the webhook and the
	// agent, as a Helm release named waybill in the system namespace there, of the version and with
	// the image of the hub. Default: none, it is installed by other means where it is wanted.
	// +optional
	Agent *ClusterAgent `json:"agent,omitempty"`

	// InstallationsFrom names a ConfigMap in the same namespace with a list of ApplicationInstallations,
	// which are created in the cluster once it is connected for the first time. The ConfigMap needs the
	// label `apps.waybill.dev/values: protected`. Default: none.
	// +optional
	InstallationsFrom *InstallationsReference `json:"installationsFrom,omitempty"`
}

// ClusterAgent defines what is installed of Waybill itself in a user cluster.
type ClusterAgent struct {
	// Values of the chart, over those that come from the hub. roles.hub and roles.driver are always
	// false.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// InstallationsReference names a key of a ConfigMap with a list of ApplicationInstallations.
type InstallationsReference struct {
	// Name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key within the ConfigMap. Default: installations.yaml.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// GetKey returns the key that holds the list; installations.yaml if none is set.
func (r InstallationsReference) GetKey() string {
	if r.Key == "" {
		return "installations.yaml"
	}
	return r.Key
}

// TakenInstallations is how far the list that spec.installationsFrom names has been carried out.
type TakenInstallations struct {
	// Name of the ConfigMap.
	// +required
	Name string `json:"name"`

	// Key within the ConfigMap.
	// +required
	Key string `json:"key"`

	// Pending are the installations of the list, as `<namespace>/<name>`, that are still to be created.
	// What is not in it is never created again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2000
	Pending []string `json:"pending,omitempty"`
}

// ProvidedDefinition is an ApplicationDefinition with default or enforced of which Waybill has created,
// or is to create, an installation in the cluster.
type ProvidedDefinition struct {
	// Name of the definition.
	// +required
	Name string `json:"name"`

	// UID of the definition: another one of the same name is installed again.
	// +required
	UID types.UID `json:"uid"`

	// Problem is why its installation does not exist, or is not as the definition wants it; empty if
	// all is well.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// InstallationSummary is a summary of one ApplicationInstallation in a cluster.
type InstallationSummary struct {
	// Namespace of the ApplicationInstallation.
	// +required
	Namespace string `json:"namespace"`

	// Name of the ApplicationInstallation.
	// +required
	Name string `json:"name"`

	// Definition that it installs.
	// +required
	Definition string `json:"definition"`

	// Version of the definition that is installed, or requested if none is installed yet.
	// +optional
	Version string `json:"version,omitempty"`

	// Ready is the status of its condition Ready: True, False or Unknown.
	// +optional
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
}

// DefinitionUsage lists the installations that use one version of a definition in the clusters of a seed.
type DefinitionUsage struct {
	// Definition that they install.
	// +required
	Definition string `json:"definition"`

	VersionUsage `json:",inline"`
}

// ClusterAgentStatus is what is installed of Waybill itself in a user cluster. It is there from before
// the first install until after the uninstall.
type ClusterAgentStatus struct {
	// Version of the chart that is installed.
	// +optional
	Version string `json:"version,omitempty"`

	// Image that its programs run.
	// +optional
	Image string `json:"image,omitempty"`

	// Release is the state of the Helm release.
	// +optional
	Release *ReleaseStatus `json:"release,omitempty"`

	// Inventory of the objects of the release.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Inventory []InventoryEntry `json:"inventory,omitempty"`
}

// KubernetesClusterStatus is the last known state of a user cluster.
type KubernetesClusterStatus struct {
	ReconcileStatus `json:",inline"`

	// Version of Kubernetes that the API server reports.
	// +optional
	Version string `json:"version,omitempty"`

	// UID is the UID of namespace kube-system of the cluster that this object is bound to, since the
	// first contact. Two KubernetesClusters with the same UID and store are the same cluster. A
	// kubeconfig that leads to a cluster with another UID is not used, unless the annotation
	// apps.waybill.dev/accept-cluster-uid names that UID.
	// +optional
	UID string `json:"uid,omitempty"`

	// Store tells clusters that report the same UID from each other: it is empty for the first of them,
	// and for another one the UID of the KubernetesCluster that led to it first.
	// +optional
	Store string `json:"store,omitempty"`

	// BoundAt is since when this object is bound to the cluster with that UID.
	// +optional
	BoundAt *metav1.MicroTime `json:"boundAt,omitempty"`

	// Definitions have the name and the UID of each ApplicationDefinition of which an installation
	// was begun in the cluster while it was offered to it, as long as there is one. Those
	// installations are kept if the cluster is not offered the definition any more.
	// +optional
	// +kubebuilder:validation:MaxProperties=500
	Definitions map[string]string `json:"definitions,omitempty"`

	// InstallationsTaken is how far the list that spec.installationsFrom names has been carried out; it
	// is carried out once.
	// +optional
	InstallationsTaken *TakenInstallations `json:"installationsTaken,omitempty"`

	// Provided are the definitions with default or enforced that the cluster was given an installation
	// of. One that is listed without a problem is not installed again because of default. Of a seed, these are
	// the definitions of which some of its clusters lack the installation, with the first of these clusters.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	Provided []ProvidedDefinition `json:"provided,omitempty"`

	// Reachable is true while the API server answers. It is false while it is not probed, as when
	// spec.paused is set; the condition ClusterReachable is Unknown then.
	// +optional
	Reachable bool `json:"reachable"`

	// LastSeen is when the API server last answered. It is written only when the cluster is lost
	// and when it is back.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// Installations in the cluster, sorted by namespace and name, at most 2,000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2000
	Installations []InstallationSummary `json:"installations,omitempty"`

	// Usage of the definitions that a seed has copies of, by installations in its clusters, sorted by
	// definition and version, at most 1,000 versions. Installations are named as
	// `<cluster namespace>/<cluster>/<namespace>/<name>`, at most 20 of a version.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Usage []DefinitionUsage `json:"usage,omitempty"`

	// InstallationCount is the total number of installations, listed or not. Of a seed, it is the number
	// of those in its clusters that use definitions of this hub.
	// +optional
	InstallationCount int32 `json:"installationCount"`

	// Agent is what is installed of Waybill itself from here.
	// +optional
	Agent *ClusterAgentStatus `json:"agent,omitempty"`
}

// KubernetesCluster is one user cluster, or one seed. Selectors match its labels.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=waybill,shortName=kc
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterReachable")].status`
// +kubebuilder:printcolumn:name="Paused",type=boolean,JSONPath=`.spec.paused`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Installations",type=integer,JSONPath=`.status.installationCount`
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.status.agent.version`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.role) ? self.spec.role : 'User') == (has(oldSelf.spec) && has(oldSelf.spec.role) ? oldSelf.spec.role : 'User')",message="role is immutable: delete and recreate the KubernetesCluster",fieldPath=".spec.role"
type KubernetesCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines how to reach the cluster.
	// +optional
	Spec KubernetesClusterSpec `json:"spec,omitempty"`

	// Status is the last known state of the cluster.
	// +kubebuilder:default={"observedGeneration":-1}
	Status KubernetesClusterStatus `json:"status,omitempty"`
}

// KubernetesClusterList is a list of KubernetesClusters.
// +kubebuilder:object:root=true
type KubernetesClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubernetesCluster `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (k *KubernetesCluster) GetReconcileStatus() *ReconcileStatus {
	return &k.Status.ReconcileStatus
}

// GetConditions returns the conditions of the status.
func (k *KubernetesCluster) GetConditions() []metav1.Condition { return k.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (k *KubernetesCluster) SetConditions(c []metav1.Condition) { k.Status.Conditions = c }

// IsSeed reports whether the cluster is a hub of its own.
func (k *KubernetesCluster) IsSeed() bool { return k.Spec.Role == ClusterRoleSeed }

// GetOnDelete returns the deletion policy; Wait if none is set.
func (k *KubernetesCluster) GetOnDelete() DeletePolicy {
	if k.Spec.OnDelete == "" {
		return DeleteWait
	}
	return k.Spec.OnDelete
}

// MaxBegunDefinitions is how many entries status.definitions may have.
const MaxBegunDefinitions = 500

// HasBegun reports whether an installation of the definition was begun in the cluster while it was
// offered to it. uid is that of the cluster: what was begun in another one does not count.
func (k *KubernetesCluster) HasBegun(definition *ApplicationDefinition, uid string) bool {
	begun, ok := k.Status.Definitions[definition.Name]
	return ok && begun == string(definition.UID) && (k.Status.UID == "" || k.Status.UID == uid)
}

// MaxProvidedDefinitions is how many entries status.provided may have.
const MaxProvidedDefinitions = 500

// HasTaken reports whether the list that spec.installationsFrom names has been begun to be carried out.
func (k *KubernetesCluster) HasTaken() bool {
	from, taken := k.Spec.InstallationsFrom, k.Status.InstallationsTaken
	return from != nil && taken != nil && taken.Name == from.Name && taken.Key == from.GetKey()
}

// AsksForInstallations reports whether installations that the object asks for are still to be created.
func (k *KubernetesCluster) AsksForInstallations() bool {
	return k.Annotations[InitialInstallationsAnnotation] != "" ||
		k.Spec.InstallationsFrom != nil && (!k.HasTaken() || len(k.Status.InstallationsTaken.Pending) > 0)
}
