package v1alpha1

// Condition types. Ready, Reconciling and Stalled are those of kstatus: Ready is always
// present, Reconciling and Stalled only while they are true.
const (
	// ReadyCondition says whether the object is as its spec wants it.
	ReadyCondition = "Ready"

	// ReconcilingCondition is present and True while work is going on or is retried.
	ReconcilingCondition = "Reconciling"

	// StalledCondition is present and True when nothing happens until somebody acts; its
	// message says who and how.
	StalledCondition = "Stalled"

	// ClusterReachableCondition of a KubernetesCluster says whether its API server answers.
	// On an ApplicationInstallation it is present only while it is False.
	ClusterReachableCondition = "ClusterReachable"

	// InstalledCondition of an ApplicationInstallation says whether its release is deployed,
	// healthy or not (C43).
	InstalledCondition = "Installed"

	// DriftedCondition of an ApplicationInstallation is present and True while objects differ
	// from the release and drift detection is Warn.
	DriftedCondition = "Drifted"

	// ComponentsReadyCondition of an Application says whether every component is installed
	// and healthy.
	ComponentsReadyCondition = "ComponentsReady"

	// DependenciesReadyCondition of an Application says whether every dependency is installed.
	DependenciesReadyCondition = "DependenciesReady"

	// ScheduledCondition of a KubernetesApplication says whether it has a cluster, and where
	// it has none, for each cluster why not.
	ScheduledCondition = "Scheduled"

	// SubmittedCondition of a KubernetesApplicationResource says whether the cluster holds the
	// object as it is templated, healthy or not; of a KubernetesApplication, whether that is
	// so for all of its resources. What the cluster refused stands in it, word for word.
	SubmittedCondition = "Submitted"

	// RemoteStatusTooLargeCondition of a KubernetesApplicationResource is present and True
	// while the status of the object is left out for its size (C58).
	RemoteStatusTooLargeCondition = "RemoteStatusTooLarge"
)

// Reasons that several kinds use.
const (
	// SucceededReason: everything is as the spec wants it. Ready is True.
	SucceededReason = "Succeeded"

	// ProgressingReason: work is going on.
	ProgressingReason = "Progressing"

	// ProgressingWithRetryReason: the last try failed and is repeated.
	ProgressingWithRetryReason = "ProgressingWithRetry"

	// SuspendedReason: spec.suspend or spec.paused is set.
	SuspendedReason = "Suspended"

	// DeletingReason: what was delivered is being deleted; the message says what is left.
	DeletingReason = "Deleting"

	// DeleteFailedReason: something that was delivered could not be deleted (C34).
	DeleteFailedReason = "DeleteFailed"

	// InvalidSpecReason: the spec is wrong in a way that admission could not see.
	InvalidSpecReason = "InvalidSpec"

	// SecretNotFoundReason: a Secret that the spec names does not exist.
	SecretNotFoundReason = "SecretNotFound"

	// InvalidSecretReason: a Secret that the spec names lacks a key or holds nonsense.
	InvalidSecretReason = "InvalidSecret"

	// ClusterUnreachableReason: an API server does not answer, or refuses whatever it is asked.
	ClusterUnreachableReason = "ClusterUnreachable"

	// InUseReason: it is being deleted and something needs it still: installations of a
	// definition, or what is left in a cluster (C38, C47).
	InUseReason = "InUse"

	// NotHealthyReason: objects are applied and not, or not yet, healthy.
	NotHealthyReason = "NotHealthy"

	// ApplyFailedReason: at least one object was refused; status.problems names it.
	ApplyFailedReason = "ApplyFailed"

	// PruneFailedReason: at least one object that is not wanted any more could not be deleted;
	// status.problems names it.
	PruneFailedReason = "PruneFailed"

	// InventoryUnreadableReason: a Secret of status.inventory is gone or damaged. Without it
	// nobody knows what was delivered, so nothing is applied or deleted.
	InventoryUnreadableReason = "InventoryUnreadable"

	// ForbiddenReason: the identity that is used lacks a right; the message names both.
	ForbiddenReason = "Forbidden"
)

// Reasons of git sources, on GitSync and ApplicationInstallation.
const (
	// GitUnreachableReason: the git server does not answer. What was delivered stays (P13).
	GitUnreachableReason = "GitUnreachable"

	// GitAuthenticationFailedReason: the git server refused the credentials.
	GitAuthenticationFailedReason = "GitAuthenticationFailed"

	// GitReferenceNotFoundReason: the repository has no such branch, tag or commit.
	GitReferenceNotFoundReason = "GitReferenceNotFound"

	// GitFailedReason: the repository could not be read for any other reason.
	GitFailedReason = "GitFailed"

	// PathNotFoundReason: the revision has no such folder.
	PathNotFoundReason = "PathNotFound"

	// EmptyPathReason: the folder holds no manifest, and allowEmpty is not set.
	EmptyPathReason = "EmptyPath"

	// BuildFailedReason: the kustomization does not build.
	BuildFailedReason = "BuildFailed"

	// InvalidManifestReason: at least one file is no manifest; status.problems names it (P12).
	InvalidManifestReason = "InvalidManifest"
)

// Reasons of KubernetesCluster.
const (
	// InvalidKubeconfigReason: the kubeconfig cannot be used; the message says why (C38).
	InvalidKubeconfigReason = "InvalidKubeconfig"
)

// Reasons of ApplicationDefinition.
const (
	// CopyFailedReason: a user cluster has no current copy; the message names it.
	CopyFailedReason = "CopyFailed"
)

// Reasons of ApplicationInstallation.
const (
	// DefinitionNotFoundReason: there is no such definition, or no such version, yet (C46).
	DefinitionNotFoundReason = "DefinitionNotFound"

	// DefinitionGoneReason: the definition or version was there and is gone; the
	// installation keeps running (C47).
	DefinitionGoneReason = "DefinitionGone"

	// SourceUnreachableReason: the helm repository or registry does not answer.
	SourceUnreachableReason = "SourceUnreachable"

	// SourceAuthenticationFailedReason: the helm repository or registry refused the credentials.
	SourceAuthenticationFailedReason = "SourceAuthenticationFailed"

	// ChartNotFoundReason: there is no such chart, or no such version of it.
	ChartNotFoundReason = "ChartNotFound"

	// InvalidChartReason: the chart cannot be loaded, or is too large.
	InvalidChartReason = "InvalidChart"

	// InvalidValuesReason: values are no YAML, or do not fit the chart's schema.
	InvalidValuesReason = "InvalidValues"

	// InstallFailedReason: the first install failed.
	InstallFailedReason = "InstallFailed"

	// UpgradeFailedReason: an upgrade failed.
	UpgradeFailedReason = "UpgradeFailed"

	// UninstallFailedReason: the uninstall failed; the finalizer stays (C34).
	UninstallFailedReason = "UninstallFailed"

	// NamespaceNotFoundReason: the target namespace does not exist and create is not set (K37).
	NamespaceNotFoundReason = "NamespaceNotFound"

	// ReleaseConflictReason: a release or Application of that name belongs to somebody else (C55).
	ReleaseConflictReason = "ReleaseConflict"

	// ReleaseAlteredReason: Helm's record of the release is not as Waybill wrote it, and is neither
	// run nor applied. On the condition Ready where a rollback needs that record; an event where
	// another revision was made from the chart, or the release was uninstalled without its delete hooks.
	ReleaseAlteredReason = "ReleaseAltered"

	// DriftDetectedReason: objects differ from the release.
	DriftDetectedReason = "DriftDetected"

	// DriftCorrectedReason: objects differed from the release and were put right. Events only.
	DriftCorrectedReason = "DriftCorrected"
)

// Reasons of Application.
const (
	// DependencyNotInstalledReason: a dependency does not exist in the namespace (A58).
	DependencyNotInstalledReason = "DependencyNotInstalled"

	// DependencyCycleReason: the Application depends on itself, through others.
	DependencyCycleReason = "DependencyCycle"

	// OwnershipFailedReason: the ownerReference of a component could not be written; the
	// message says why (A62).
	OwnershipFailedReason = "OwnershipFailed"

	// HealthCheckNotReadyReason: the Pod of the health check is not ready, or not yet (A87).
	HealthCheckNotReadyReason = "HealthCheckNotReady"

	// HealthCheckRefusedReason: the API server refused the Pod of the health check, as quotas
	// and Pod Security do; the message is its own (A42, C50).
	HealthCheckRefusedReason = "HealthCheckRefused"
)

// Reasons of KubernetesApplication.
const (
	// NoClusterFitsReason: no cluster can take the application; the message says why not, for
	// each that the selector matches.
	NoClusterFitsReason = "NoClusterFits"

	// ClusterNotFoundReason: the KubernetesCluster that it is scheduled to does not exist. It is
	// not moved to another (W60).
	ClusterNotFoundReason = "ClusterNotFound"

	// ResourceConflictReason: a KubernetesApplicationResource with the name of a template
	// belongs to somebody else; it is left alone (W46).
	ResourceConflictReason = "ResourceConflict"

	// ResourcesFailedReason: at least one resource was not submitted; the message says which,
	// and what was answered.
	ResourcesFailedReason = "ResourcesFailed"
)

// Reasons of KubernetesApplicationResource.
const (
	// NotScheduledReason: there is no cluster yet (W41).
	NotScheduledReason = "NotScheduled"

	// ObjectConflictReason: the object in the cluster belongs to somebody else; it is left
	// alone (W51, W52).
	ObjectConflictReason = "ObjectConflict"

	// KindNotServedReason: the cluster does not serve the kind of the template, or not in that
	// version (C57).
	KindNotServedReason = "KindNotServed"

	// SecretNotPropagatedReason: a Secret that the spec names may not leave the hub (C36).
	SecretNotPropagatedReason = "SecretNotPropagated"

	// SecretsNeedNamespaceReason: the kind of the template is cluster-scoped, so there is no
	// namespace to copy Secrets into (C58).
	SecretsNeedNamespaceReason = "SecretsNeedNamespace"

	// OwnerMissingReason: the resource is being deleted and its application is gone without
	// having deleted it; the object stays until somebody says what is meant (C40).
	OwnerMissingReason = "OwnerMissing"
)
