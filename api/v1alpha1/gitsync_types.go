package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GitSyncKind is the kind of a GitSync.
const GitSyncKind = "GitSync"

// GitSyncSpec defines what to pull from git and where to apply it.
// +kubebuilder:validation:XValidation:rule="!self.url.startsWith('http://') || !has(self.secretRef)",message="credentials are never sent over http: use https or ssh"
type GitSyncSpec struct {
	// URL of the repository: https://, http:// or ssh://, or git@host:path.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^((https?|ssh)://[^\s]+|[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:[^\s]+)$`
	URL string `json:"url"`

	// Ref selects the commit to apply. Default: the branch that HEAD names.
	// +optional
	Ref *GitReference `json:"ref,omitempty"`

	// Path of the folder that holds the manifests, or a kustomization. Default: the
	// root of the repository.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`

	// Interval at which the repository is checked; up to a tenth of it is added at random. Default:
	// 1m.
	// +optional
	// +kubebuilder:default="1m0s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9.]+(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('1s')",message="must be 1s or more, in hours, minutes and seconds: 24h, 1h30m, 90s"
	Interval metav1.Duration `json:"interval,omitzero"`

	// Timeout of a fetch, of an apply in one cluster, and of waiting for health. Default: 1m.
	// +optional
	// +kubebuilder:default="1m0s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9.]+(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('1s')",message="must be 1s or more, in hours, minutes and seconds: 24h, 1h30m, 90s"
	Timeout metav1.Duration `json:"timeout,omitzero"`

	// SecretRef names a Secret in the same namespace with the credentials for the repository:
	// username and password, or bearerToken, and ca.crt for https; identity, known_hosts and
	// optionally identity.password for ssh.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// Prune deletes objects that were removed from the repository. Default: true.
	// +optional
	// +kubebuilder:default=true
	Prune *bool `json:"prune,omitempty"`

	// AllowEmpty allows a path without any manifest, which prunes everything. Default: false: an
	// empty path is an error and nothing is deleted.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`

	// Adopt takes over objects that exist in the cluster and have no owner: neither another owner of
	// Waybill, nor a Helm release, nor a controller. Default: false: such an object is a
	// conflict. The annotation apps.waybill.dev/adopt on a manifest wins.
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// Force deletes an object of which a field cannot be changed, such as the template of a Job, and
	// creates it again. It never does so to a PersistentVolumeClaim, a PersistentVolume, a
	// Namespace, a CustomResourceDefinition or a custom object; the Pods and claims of a StatefulSet
	// stay. Default: false: the change is refused. The annotation apps.waybill.dev/force on a manifest
	// wins.
	// +optional
	Force bool `json:"force,omitempty"`

	// TargetNamespace is the namespace of namespaced manifests that name none. Default: the
	// namespace of the GitSync in its own cluster, `default` in others.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	TargetNamespace string `json:"targetNamespace,omitempty"`

	// ServiceAccountName is the ServiceAccount in the GitSync's namespace that is impersonated in
	// the target cluster. Default: `default`; in the system namespace, Waybill's own identity.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// ClusterSelector selects the KubernetesClusters in the GitSync's namespace that the manifests
	// are applied to. Default: the cluster that the GitSync lives in.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Suspend stops everything except deletion. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Wait delays Ready until every object is healthy. Default: false.
	// +optional
	Wait bool `json:"wait,omitempty"`

	// Ignore holds patterns in the format of .gitignore; files that match are not applied.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Ignore *string `json:"ignore,omitempty"`

	// IgnoreDifferences names fields that others set, such as the replicas of what an autoscaler scales.
	// The manifest sets them when an object is created; from then on they are left as they are. When an
	// entry is removed, what the manifest says is applied again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	IgnoreDifferences []IgnoredDifference `json:"ignoreDifferences,omitempty"`
}

// GitSyncClusterStatus is the state of one cluster.
type GitSyncClusterStatus struct {
	// Name of the KubernetesCluster; empty for the cluster that the GitSync lives in.
	// +required
	Name string `json:"name"`

	// Ready is true if the attempted revision was applied to the cluster without a problem. It stays true
	// while the KubernetesCluster is paused, until another revision is attempted.
	// +required
	Ready bool `json:"ready"`

	// Revision that was last applied to this cluster without a problem.
	// +optional
	Revision string `json:"revision,omitempty"`

	// AppliedDigest identifies the objects in this cluster as they were last applied. As long as they match
	// it, nothing is applied after a restart; unset if that is not known.
	// +optional
	AppliedDigest string `json:"appliedDigest,omitempty"`

	// Leaving is true while the objects of a cluster that is no longer selected are being deleted.
	// +optional
	Leaving bool `json:"leaving,omitempty"`

	// Reason is one word, for programs; empty when ready, unless the KubernetesCluster is paused.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message explains what is wrong, for people; empty when ready, unless the KubernetesCluster is
	// paused.
	// +optional
	Message string `json:"message,omitempty"`
}

// GitSyncStatus reports what was delivered to the clusters.
type GitSyncStatus struct {
	ReconcileStatus `json:",inline"`

	// Revision that was last applied everywhere without a problem, e.g. `main@sha1:4f2a…`: in every
	// selected cluster, also in those that are paused.
	// +optional
	Revision string `json:"revision,omitempty"`

	// AttemptedRevision is the revision that was last attempted of the path in the spec; empty as long
	// as that could not be read yet.
	// +optional
	AttemptedRevision string `json:"attemptedRevision,omitempty"`

	// Inventory of what was delivered.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`

	// AppliedDigest identifies the objects as they were last applied, for a GitSync without a
	// clusterSelector: their manifests, and when which of their fields were. As long as they match it,
	// nothing is applied after a restart; unset if that is not known.
	// +optional
	AppliedDigest string `json:"appliedDigest,omitempty"`

	// Held lists, at most 500, the objects that an ApplicationRollback holds: they are left as they are
	// until what is wanted of them changes, or the hold ends.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Held []Hold `json:"held,omitempty"`

	// Problems of the attempted revision, at most 50; problemCount counts them all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Problems []Problem `json:"problems,omitempty"`

	// ProblemCount is the number of problems, listed or not.
	// +optional
	ProblemCount int32 `json:"problemCount,omitempty"`

	// Clusters lists the state of each target cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []GitSyncClusterStatus `json:"clusters,omitempty"`
}

// GitSync pulls manifests from a git repository and applies them to this cluster, or to
// every cluster that a selector matches.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=waybill,shortName=gs
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.inventory.count`
// +kubebuilder:printcolumn:name="Problems",type=integer,JSONPath=`.status.problemCount`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type GitSync struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines what to pull and where to apply it.
	Spec GitSyncSpec `json:"spec"`

	// Status reports what was delivered to the clusters.
	// +kubebuilder:default={"observedGeneration":-1}
	Status GitSyncStatus `json:"status,omitempty"`
}

// GitSyncList is a list of GitSyncs.
// +kubebuilder:object:root=true
type GitSyncList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitSync `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (g *GitSync) GetReconcileStatus() *ReconcileStatus { return &g.Status.ReconcileStatus }

// GetConditions returns the conditions of the status.
func (g *GitSync) GetConditions() []metav1.Condition { return g.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (g *GitSync) SetConditions(c []metav1.Condition) { g.Status.Conditions = c }

// GetRef returns the reference; the zero value if none is set.
func (g *GitSync) GetRef() GitReference {
	if g.Spec.Ref == nil {
		return GitReference{}
	}
	return *g.Spec.Ref
}

// GetDefaultNamespace returns the namespace of namespaced manifests that name none.
func (g *GitSync) GetDefaultNamespace() string {
	switch {
	case g.Spec.TargetNamespace != "":
		return g.Spec.TargetNamespace
	case g.Spec.ClusterSelector == nil:
		return g.Namespace
	default:
		return metav1.NamespaceDefault
	}
}

// GetInterval returns the interval; 1 minute if none is set.
func (g *GitSync) GetInterval() time.Duration { return durationOr(g.Spec.Interval, time.Minute) }

// GetTimeout returns the timeout; 1 minute if none is set.
func (g *GitSync) GetTimeout() time.Duration { return durationOr(g.Spec.Timeout, time.Minute) }

// GetPrune reports whether objects removed from the repository are deleted; true if nothing is set.
func (g *GitSync) GetPrune() bool { return g.Spec.Prune == nil || *g.Spec.Prune }

// GetIgnore returns the ignore patterns; empty if none are set.
func (g *GitSync) GetIgnore() string {
	if g.Spec.Ignore == nil {
		return ""
	}
	return *g.Spec.Ignore
}

func durationOr(d metav1.Duration, fallback time.Duration) time.Duration {
	if d.Duration <= 0 {
		return fallback
	}
	return d.Duration
}
