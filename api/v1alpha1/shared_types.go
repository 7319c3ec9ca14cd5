package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LocalReference names an object in the namespace of the object that refers to it.
type LocalReference struct {
	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SecretKeyReference names a key of a Secret in the namespace of the object that
// refers to it.
type SecretKeyReference struct {
	// Name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key within the Secret. Default: `value`, or `kubeconfig` if `value` is absent.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// Find returns the kubeconfig in the data of the Secret, and the key that holds or should hold it.
// An empty value counts as absent.
func (r SecretKeyReference) Find(data map[string][]byte) (kubeconfig []byte, key string) {
	keys := []string{r.Key}
	if r.Key == "" {
		keys = []string{"value", "kubeconfig"}
	}
	for _, key := range keys {
		if found := data[key]; len(found) > 0 {
			return found, key
		}
	}
	return nil, keys[0]
}

// GitReference selects a commit of a repository. If several fields are set, the first of commit,
// name, semver, tag and branch counts. If none is set, it is the branch that the repository's HEAD
// names.
type GitReference struct {
	// Branch to follow.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Branch string `json:"branch,omitempty"`

	// Tag to check out.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Tag string `json:"tag,omitempty"`

	// SemVer range; the newest tag within it is checked out, e.g. `>=1.2.0 <2.0.0`.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	SemVer string `json:"semver,omitempty"`

	// Name of any reference, e.g. `refs/pull/420/head`.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name,omitempty"`

	// Commit to check out, as its full hash. If the server refuses to serve bare hashes, `branch`
	// must name a branch that contains the commit.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64})$`
	Commit string `json:"commit,omitempty"`
}

// ObjectReference identifies one object of any kind.
type ObjectReference struct {
	// Group of the kind; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`

	// Namespace of the object; empty for cluster-scoped kinds.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +optional
	Name string `json:"name,omitempty"`
}

// Hold is an object that is delivered, and that an ApplicationRollback holds.
type Hold struct {
	ObjectReference `json:",inline"`

	// Cluster is the name of the KubernetesCluster that the object is in; empty for the cluster that
	// this object lives in, and where there is only one.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Rollback is the name of the ApplicationRollback, in the namespace of the object; `snapshot:` and the
	// name of an ApplicationSnapshot while that has scaled the application to zero.
	// +required
	Rollback string `json:"rollback"`

	// RollbackUID is its UID.
	// +optional
	RollbackUID types.UID `json:"rollbackUID,omitempty"`

	// Since is when it was found that the object is held.
	// +required
	Since metav1.Time `json:"since"`

	// Wanted identifies what was wanted of the object then. Empty: something else has been wanted since,
	// so the object is delivered again, although the rollback still names it.
	// +optional
	Wanted string `json:"wanted,omitempty"`
}

// Holds reports whether the object is left as it is.
func (h Hold) Holds() bool { return h.Wanted != "" }

// Problem is one object, or one file, that could not be delivered.
type Problem struct {
	ObjectReference `json:",inline"`

	// File that contains the object, relative to the root of the repository.
	// +optional
	File string `json:"file,omitempty"`

	// Line of the file where the object begins, from 1.
	// +optional
	Line int32 `json:"line,omitempty"`

	// Cluster that refused the object: the name of a KubernetesCluster, empty for
	// the cluster that this object lives in.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Reason is one word, for programs.
	// +required
	Reason string `json:"reason"`

	// Message explains what is wrong and what to do, for people.
	// +required
	Message string `json:"message"`
}

// InventoryEntry identifies one object that was delivered.
type InventoryEntry struct {
	// ID is `<namespace>_<name>_<group>_<kind>`; absent parts are empty.
	// +required
	ID string `json:"id"`

	// Version of the API that the object was last delivered with.
	// +optional
	Version string `json:"v,omitempty"`
}

// Inventory lists the objects that were delivered, so that those that leave the source can be
// pruned.
type Inventory struct {
	// Entries, sorted by id. Empty if the inventory is too large for a status.
	// +optional
	// +listType=atomic
	Entries []InventoryEntry `json:"entries,omitempty"`

	// Secrets are the names of the Secrets that hold the entries if these are too many for a
	// status. They are in the namespace of the owner.
	// +optional
	// +listType=atomic
	Secrets []string `json:"secrets,omitempty"`

	// Digest of what the Secrets hold: Secrets that others have changed are not read.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Count is the number of entries, wherever they are stored.
	// +optional
	Count int32 `json:"count,omitempty"`
}

// ReconcileStatus is the part of the status that every reconciled kind shares.
type ReconcileStatus struct {
	// ObservedGeneration is the latest generation that was acted on; -1 before the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// LastHandledReconcileAt is the last value of the annotation `apps.waybill.dev/reconcile-at`
	// that was acted on.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// Conditions of the object; the documentation of its kind lists them.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
