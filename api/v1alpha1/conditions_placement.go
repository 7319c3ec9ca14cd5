package v1alpha1

// Reasons of KubernetesApplication.
const (
	// NoClusterFitsReason: no cluster can take the application; the message says why, for each
	// cluster that the selector matches.
	NoClusterFitsReason = "NoClusterFits"

	// ClusterNotServedReason: no running process seems to serve any of the clusters that the
	// selector matches; the message names them.
	ClusterNotServedReason = "ClusterNotServed"

	// ClusterNotFoundReason: the KubernetesCluster that the application is scheduled to does not
	// exist. The application is not moved to another cluster.
	ClusterNotFoundReason = "ClusterNotFound"

	// ResourceConflictReason: a KubernetesApplicationResource with the name of a template belongs
	// to another owner; it is left alone.
	ResourceConflictReason = "ResourceConflict"

	// ResourcesFailedReason: at least one resource was not submitted; the message says which, and
	// what the API server answered.
	ResourcesFailedReason = "ResourcesFailed"
)

// Reasons of KubernetesApplicationResource.
const (
	// NotScheduledReason: there is no cluster yet.
	NotScheduledReason = "NotScheduled"

	// ObjectConflictReason: the object in the cluster belongs to another owner; it is left alone.
	ObjectConflictReason = "ObjectConflict"

	// KindNotServedReason: the cluster does not serve the kind of the template, at least not in
	// that version.
	KindNotServedReason = "KindNotServed"

	// SecretNotPropagatedReason: a Secret named in the spec may not leave the hub.
	SecretNotPropagatedReason = "SecretNotPropagated"

	// SecretsNeedNamespaceReason: the kind of the template is cluster-scoped, so there is no
	// namespace to copy Secrets into.
	SecretsNeedNamespaceReason = "SecretsNeedNamespace"

	// OwnerMissingReason: the resource is being deleted, but its application is gone without having
	// deleted it. The object stays until a user decides what should happen to it.
	OwnerMissingReason = "OwnerMissing"
)
