package v1alpha1

// Condition types. Ready, Reconciling and Stalled are those of kstatus: Ready is always
// present, Reconciling and Stalled only while they are true.
const (
	// ReadyCondition reports whether the object matches its spec.
	ReadyCondition = "Ready"

	// ReconcilingCondition is present and True while work is in progress or being retried.
	ReconcilingCondition = "Reconciling"

	// StalledCondition is present and True when nothing happens until a user acts. Its message
	// says who has to do what.
	StalledCondition = "Stalled"

	// ClusterReachableCondition of a KubernetesCluster reports whether its API server answers. On
	// an ApplicationInstallation it is present only while it is False.
	ClusterReachableCondition = "ClusterReachable"

	// InstalledCondition of an ApplicationInstallation reports whether its release is deployed,
	// healthy or not.
	InstalledCondition = "Installed"

	// DriftedCondition of an ApplicationInstallation is present and True while objects differ
	// from the release and drift detection is Warn.
	DriftedCondition = "Drifted"

	// ComponentsReadyCondition of an Application reports whether every component is installed and
	// healthy.
	ComponentsReadyCondition = "ComponentsReady"

	// DependenciesReadyCondition of an Application reports whether every dependency is installed.
	DependenciesReadyCondition = "DependenciesReady"

	// OrphaningCondition of an Application is True while it is being deleted with --cascade=orphan,
	// and only present then. The garbage collector removes its finalizer, which would say the same.
	OrphaningCondition = "Orphaning"

	// ScheduledCondition of a KubernetesApplication reports whether it has a cluster and, if not,
	// why each cluster was rejected.
	ScheduledCondition = "Scheduled"

	// SubmittedCondition of a KubernetesApplicationResource reports whether the cluster holds the
	// object as templated, healthy or not; that of a KubernetesApplication reports the same for all
	// of its resources. If the cluster refused an object, the message quotes its answer verbatim.
	SubmittedCondition = "Submitted"

	// RemoteStatusTooLargeCondition of a KubernetesApplicationResource is present and True while
	// the status of the object is omitted because of its size.
	RemoteStatusTooLargeCondition = "RemoteStatusTooLarge"

	// HeldCondition of a GitSync, ApplicationInstallation, KubernetesApplication or
	// KubernetesApplicationResource is present and True while it leaves objects as an
	// ApplicationRollback has put them, although git or its spec wants something else. Its reason is
	// RolledBack, or NotRolledBack if a Helm release could not be rolled back; ScaledToZero while an
	// ApplicationSnapshot has scaled them to zero.
	HeldCondition = "Held"

	// InitialInstallationsCreatedCondition of a KubernetesCluster reports whether the installations that
	// it asks for exist in the cluster. It is present from the first time on that it asks for some.
	InitialInstallationsCreatedCondition = "InitialInstallationsCreated"

	// DefinitionsProvidedCondition of a KubernetesCluster reports whether each ApplicationDefinition with
	// default or enforced that is offered to the cluster is installed there as it is to be. It is present
	// from the first such definition on.
	DefinitionsProvidedCondition = "DefinitionsProvided"

	// UIDConflictCondition of a KubernetesCluster is present and True while another one reports the
	// same UID, and is not proved to lead to the same cluster. Both are used.
	UIDConflictCondition = "UIDConflict"

	// CredentialsCopiedCondition of a KubernetesCluster reports whether the source credentials that it needs
	// are copied: of a seed, to its system namespace. Of a user cluster it is present only where
	// --credentials-namespace=cluster is set, and is about the namespace of the KubernetesCluster.
	CredentialsCopiedCondition = "CredentialsCopied"

	// AgentReadyCondition of a KubernetesCluster with spec.agent, or with a release of it that is still
	// to be uninstalled, reports whether that release is as wanted and its programs run. Ready does not
	// depend on it.
	AgentReadyCondition = "AgentReady"
)

// Condition types of an ApplicationSnapshot, one for each part of the work, beside Ready.
const (
	// MetadataSnapshotCompletedCondition reports whether the definitions of the objects are stored.
	MetadataSnapshotCompletedCondition = "MetadataSnapshotCompleted"

	// PreHookExecutionCompletedCondition reports whether the pre-hooks ran, or the workloads are
	// scaled to zero.
	PreHookExecutionCompletedCondition = "PreHookExecutionCompleted"

	// VolumeSnapshotCompletedCondition reports whether the VolumeSnapshots are ready to use.
	VolumeSnapshotCompletedCondition = "VolumeSnapshotCompleted"

	// PostHookExecutionCompletedCondition reports whether the application was released: the post-hooks
	// ran, or the workloads have their replicas back.
	PostHookExecutionCompletedCondition = "PostHookExecutionCompleted"

	// SnapshotFailedCondition is present and True once the snapshot has failed; status.error says why.
	SnapshotFailedCondition = "SnapshotFailed"

	// SnapshotReadyCondition reports whether the snapshot can be restored.
	SnapshotReadyCondition = "SnapshotReady"
)

// Reasons that several kinds share.
const (
	// SucceededReason: everything matches the spec. Ready is True.
	SucceededReason = "Succeeded"

	// ProgressingReason: work is in progress. Ready is Unknown, and its message says how far the work
	// is while it takes long.
	ProgressingReason = "Progressing"

	// ProgressingWithRetryReason: the last attempt failed and is being retried.
	ProgressingWithRetryReason = "ProgressingWithRetry"

	// RolledBackReason: objects are as an ApplicationRollback has put them, and stay so until what is
	// wanted of them changes, or the hold ends. Held is True.
	RolledBackReason = "RolledBack"

	// ScaledToZeroReason: objects are left as an ApplicationSnapshot has scaled them, until its volumes are cut.
	ScaledToZeroReason = "ScaledToZero"

	// NotRolledBackReason: the objects are left as an ApplicationRollback has put them, but the Helm
	// release could not be rolled back; the message says why. Held is True.
	NotRolledBackReason = "NotRolledBack"

	// SuspendedReason: spec.suspend or spec.paused is set, of the object itself or of a KubernetesCluster
	// that it needs. Ready is Unknown: nothing has failed, and nothing is attempted until a user unsets
	// the field. Ready is False while the object is being deleted, which waits for that. Of a GitSync
	// without spec.suspend, it means that at least one paused cluster is not known to have the attempted
	// revision, and that all others have it; status.revision is the one that all clusters have had.
	SuspendedReason = "Suspended"

	// DeletingReason: delivered objects are being deleted; the message says what is left.
	DeletingReason = "Deleting"

	// DeleteFailedReason: a delivered object could not be deleted.
	DeleteFailedReason = "DeleteFailed"

	// InvalidSpecReason: the spec is invalid in a way that admission could not detect.
	InvalidSpecReason = "InvalidSpec"

	// SecretNotFoundReason: a Secret named in the spec does not exist.
	SecretNotFoundReason = "SecretNotFound"

	// InvalidSecretReason: a Secret named in the spec lacks a key or has invalid content.
	InvalidSecretReason = "InvalidSecret"

	// ClusterUnreachableReason: an API server does not answer, or refuses every request.
	ClusterUnreachableReason = "ClusterUnreachable"

	// InUseReason: the object is being deleted but still in use: by installations of a definition,
	// or by what is left in a cluster.
	InUseReason = "InUse"

	// NotHealthyReason: objects are applied, but not (or not yet) healthy.
	NotHealthyReason = "NotHealthy"

	// ApplyFailedReason: at least one object was refused; status.problems names it.
	ApplyFailedReason = "ApplyFailed"

	// PruneFailedReason: at least one object that is no longer wanted could not be deleted;
	// status.problems names it.
	PruneFailedReason = "PruneFailed"

	// InventoryUnreadableReason: a Secret of status.inventory is missing or damaged. Without it
	// there is no record of what was delivered, so nothing is applied or deleted.
	InventoryUnreadableReason = "InventoryUnreadable"

	// ForbiddenReason: the identity in use lacks a permission; the message names both.
	ForbiddenReason = "Forbidden"
)

// Reasons of git sources, on GitSync and ApplicationInstallation.
const (
	// GitUnreachableReason: the git server does not answer. What was delivered stays.
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

	// InvalidManifestReason: at least one file is not a valid manifest; status.problems names it.
	InvalidManifestReason = "InvalidManifest"
)

// RecreatedReason: of an event of a GitSync: objects of which a field cannot be changed were deleted,
// to be created again.
const RecreatedReason = "Recreated"

// PrunedReason: of an event of a GitSync: objects were deleted, because the revision that is applied does not
// have them any more.
const PrunedReason = "Pruned"

// Reasons of KubernetesCluster.
const (
	// InvalidKubeconfigReason: the kubeconfig cannot be used; the message says why.
	InvalidKubeconfigReason = "InvalidKubeconfig"

	// ClusterChangedReason: the kubeconfig leads to another cluster than the one that the
	// KubernetesCluster is bound to; the message has the UIDs of both.
	ClusterChangedReason = "ClusterChanged"

	// UIDConflictReason: the cluster reports the UID of one that another KubernetesCluster is bound
	// to, and is not proved to be the same; the message says why. As a reason of Ready, it cannot be
	// used because its kubeconfig lacks what a proof takes, or since it reports the UID of the hub.
	UIDConflictReason = "UIDConflict"

	// LimitExceededReason: the cluster sent more than is accepted of it, and was disconnected; the
	// message says what exceeded which limit. It is tried again after a pause.
	LimitExceededReason = "LimitExceeded"

	// AgentNotInstalledReason: nothing is installed for spec.agent through this KubernetesCluster: another
	// one leads to the same cluster and comes first, or it is the cluster of the hub.
	AgentNotInstalledReason = "AgentNotInstalled"
)

// Reasons of the conditions InitialInstallationsCreated and DefinitionsProvided of KubernetesCluster.
const (
	// ClusterNotReadyReason: the cluster cannot be used yet; the message says what is waited for.
	ClusterNotReadyReason = "ClusterNotReady"

	// InvalidInstallationsReason: the list of installations cannot be read; the message says where it is
	// and why.
	InvalidInstallationsReason = "InvalidInstallations"

	// InstallationsNotCreatedReason: some of the installations that the object asks for cannot be created;
	// the message names them. They are tried again, and the others exist.
	InstallationsNotCreatedReason = "InstallationsNotCreated"

	// NotProvidedReason: the installation of a definition with default or enforced does not exist, or is
	// not as it is to be; the message names the definition.
	NotProvidedReason = "NotProvided"
)

// Reasons of ApplicationDefinition.
const (
	// CopyFailedReason: a cluster has no up-to-date copy of a definition, or of a source credential; the
	// message names the cluster, or what is in the way.
	CopyFailedReason = "CopyFailed"
)

// Reasons of ApplicationInstallation.
const (
	// DefinitionNotFoundReason: the definition, or its version, does not exist yet.
	DefinitionNotFoundReason = "DefinitionNotFound"

	// DefinitionGoneReason: the definition or version existed and is gone; the installation keeps
	// running.
	DefinitionGoneReason = "DefinitionGone"

	// SourceUnreachableReason: the Helm repository or registry does not answer.
	SourceUnreachableReason = "SourceUnreachable"

	// SourceAuthenticationFailedReason: the Helm repository or registry refused the credentials.
	SourceAuthenticationFailedReason = "SourceAuthenticationFailed"

	// ChartNotFoundReason: there is no such chart, or no such version of it.
	ChartNotFoundReason = "ChartNotFound"

	// InvalidChartReason: the chart cannot be loaded, or is too large.
	InvalidChartReason = "InvalidChart"

	// InvalidValuesReason: the values are not valid YAML, or do not match the chart's schema.
	InvalidValuesReason = "InvalidValues"

	// UnprotectedValuesReason: an object in valuesFrom lacks the label ValuesLabel, and the installation
	// acts as no ServiceAccount. What is installed stays.
	UnprotectedValuesReason = "UnprotectedValues"

	// ServiceAccountNotFoundReason: the ServiceAccount that the installation acts as does not exist.
	ServiceAccountNotFoundReason = "ServiceAccountNotFound"

	// ServiceAccountRequiredReason: the definition requires a ServiceAccount, and none is named.
	ServiceAccountRequiredReason = "ServiceAccountRequired"

	// InstallFailedReason: the first install failed.
	InstallFailedReason = "InstallFailed"

	// UpgradeFailedReason: an upgrade failed.
	UpgradeFailedReason = "UpgradeFailed"

	// UninstallFailedReason: the uninstall failed; the finalizer stays.
	UninstallFailedReason = "UninstallFailed"

	// NamespaceNotFoundReason: the target namespace does not exist and create is not set.
	NamespaceNotFoundReason = "NamespaceNotFound"

	// ReleaseConflictReason: a release or Application of that name belongs to another owner.
	ReleaseConflictReason = "ReleaseConflict"

	// RestoredClaimsUnusedReason: an installation that was restored would not use the PersistentVolumeClaims
	// that were restored for it. Nothing was installed.
	RestoredClaimsUnusedReason = "RestoredClaimsUnused"

	// CRDReplacementRefusedReason: with crds CreateReplace, the chart would replace a
	// CustomResourceDefinition that others brought, or remove versions or fields of one.
	CRDReplacementRefusedReason = "CRDReplacementRefused"

	// ReleaseAlteredReason: Helm's record of the release is not as Waybill wrote it, and is neither
	// run nor applied. It appears on the condition Ready if a rollback needs that record, and as an
	// event if another revision was created from the chart, or if the release was uninstalled
	// without its delete hooks.
	ReleaseAlteredReason = "ReleaseAltered"

	// RenderingInterruptedReason: rendering or installing the chart was interrupted, as by the end of the
	// process. It is begun again after a back-off, which grows each time.
	RenderingInterruptedReason = "RenderingInterrupted"

	// ReleaseWarningReason: of an event: the API server or the chart's schema warned of something
	// during an action, or objects stay that were to be deleted.
	ReleaseWarningReason = "ReleaseWarning"

	// DependencyNotReadyReason: an installation of spec.dependsOn is not ready, or its condition is not
	// true; the message names it. What is installed stays.
	DependencyNotReadyReason = "DependencyNotReady"

	// RequirementMissingReason: the definition requires another one, of which the cluster has no
	// installation that is ready in a version that fits. What is installed stays.
	RequirementMissingReason = "RequirementMissing"

	// SnapshotPendingReason: an upgrade waits for the ApplicationSnapshot that is taken before.
	SnapshotPendingReason = "SnapshotPending"

	// SnapshotNotTakenReason: no ApplicationSnapshot can be taken before an upgrade, or it has failed. With
	// snapshot Require, the upgrade waits; with Try, it is an event.
	SnapshotNotTakenReason = "SnapshotNotTaken"

	// SnapshotTakenReason: of an event: an ApplicationSnapshot was taken before an upgrade.
	SnapshotTakenReason = "SnapshotTaken"

	// DriftDetectedReason: objects differ from the release.
	DriftDetectedReason = "DriftDetected"

	// DriftCorrectedReason: objects differed from the release and were corrected. Events only.
	DriftCorrectedReason = "DriftCorrected"
)

// Reasons of Application.
const (
	// DependencyNotInstalledReason: a dependency does not exist in the namespace.
	DependencyNotInstalledReason = "DependencyNotInstalled"

	// DependencyCycleReason: the Application or ApplicationInstallation depends on itself through others.
	DependencyCycleReason = "DependencyCycle"

	// OwnershipFailedReason: the ownerReference of a component could not be written; the
	// message says why.
	OwnershipFailedReason = "OwnershipFailed"

	// HealthCheckNotReadyReason: the Pod of the health check is not ready, or not yet.
	HealthCheckNotReadyReason = "HealthCheckNotReady"

	// HealthCheckRefusedReason: the API server refused the Pod of the health check, for example
	// because of a quota or Pod Security; the message is the API server's.
	HealthCheckRefusedReason = "HealthCheckRefused"
)
