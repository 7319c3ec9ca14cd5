package v1alpha1

// Labels and annotations that Waybill writes to, or reads from, objects of any kind.
const (
	// OwnerHashLabel is on everything that Waybill delivers. Its value, at most 63
	// characters, is derived from OwnerAnnotation; watches select by it.
	OwnerHashLabel = "apps.waybill.dev/owner-hash"

	// OwnerAnnotation names the owner that delivers an object: `<hub
	// id>/<kind>/<namespace>/<name>`. Ownership is decided by it, never by UIDs, so that a hub that
	// was restored from a backup still owns what it delivered.
	OwnerAnnotation = "apps.waybill.dev/owner"

	// AdoptAnnotation with the value "true" on a manifest lets Waybill take over an existing object
	// that has no owner, or another one. Any other value keeps spec.adopt of a GitSync from doing
	// so.
	AdoptAnnotation = "apps.waybill.dev/adopt"

	// PruneAnnotation with the value "disabled" keeps a delivered object in the
	// cluster when it leaves its source.
	PruneAnnotation = "apps.waybill.dev/prune"

	// HoldAnnotation with the value "disabled" on a manifest has the object corrected even if an
	// ApplicationRollback holds it. Only what git, or the installation, wants counts: the annotation of the
	// live object does not.
	HoldAnnotation = "apps.waybill.dev/hold"
	// HoldDisabled is the value of HoldAnnotation that keeps an object from being held.
	HoldDisabled = "disabled"

	// ForceAnnotation with the value "true" on a manifest lets Waybill delete the object and create it
	// again if a field of it cannot be changed. Any other value keeps spec.force of a GitSync from
	// doing so.
	ForceAnnotation = "apps.waybill.dev/force"

	// ReconcileAtAnnotation asks for a reconciliation now. Any change of its value triggers one;
	// status.lastHandledReconcileAt mirrors the last value that was acted on.
	ReconcileAtAnnotation = "apps.waybill.dev/reconcile-at"

	// ForceRemoveAnnotation on an ApplicationDefinition allows the removal of versions that
	// installations still use: a comma-separated list of versions, or `*`. Those
	// installations are then uninstalled and deleted.
	ForceRemoveAnnotation = "apps.waybill.dev/force-remove"

	// AcceptClusterUIDAnnotation on a KubernetesCluster is the UID of namespace kube-system of another
	// cluster than the one that it is bound to. It is bound to that one then, as soon as its
	// kubeconfig leads there.
	AcceptClusterUIDAnnotation = "apps.waybill.dev/accept-cluster-uid"

	// InitialInstallationsAnnotation on a KubernetesCluster is a list of ApplicationInstallations, as JSON
	// or YAML, that are created in the cluster as soon as it can be used. Each leaves the list when it
	// exists.
	InitialInstallationsAnnotation = "apps.waybill.dev/initial-application-installations-request"

	// ProvidedLabel is on the ApplicationInstallations that Waybill creates in clusters because of default
	// or enforced of their definition. Its value is ProvidedByDefault or ProvidedEnforced.
	ProvidedLabel = "apps.waybill.dev/provided"

	// ProvidedByDefault is the value of ProvidedLabel for what may be changed and removed in the cluster.
	ProvidedByDefault = "default"

	// ProvidedEnforced is the value of ProvidedLabel for what Waybill keeps as the definition wants it.
	ProvidedEnforced = "enforced"

	// CopyOfAnnotation marks a copy of an ApplicationDefinition in a user cluster.
	// Its value is the id of the hub that the copy comes from.
	CopyOfAnnotation = "apps.waybill.dev/copy-of"

	// CopyOfLabel is on each copy of a source credential, in a seed or in the namespace of a
	// KubernetesCluster. Its value is the id of the hub that the copy comes from. It is for finding copies:
	// ownership is decided by OwnerAnnotation, which names the original.
	CopyOfLabel = "apps.waybill.dev/copy-of"

	// CRDHashAnnotation on a CustomResourceDefinition that Waybill installed in a user
	// cluster is the hash of what it installed.
	CRDHashAnnotation = "apps.waybill.dev/crd-hash"

	// SecretTypeAnnotation marks a Secret of the system namespace as a source
	// credential, whatever its value. It is copied to every seed.
	SecretTypeAnnotation = "apps.waybill.dev/secret-type"

	// ValuesLabel with the value ValuesProtected on a Secret or ConfigMap restricts who may change it
	// to those who may install what takes values from it. Installations that act as no ServiceAccount
	// use no other object in valuesFrom.
	ValuesLabel = "apps.waybill.dev/values"

	// ValuesProtected is the value of ValuesLabel.
	ValuesProtected = "protected"

	// ReleaseLabel is on every object of an installation. Its value is the name of the
	// installation; the generated Application selects by it.
	ReleaseLabel = "apps.waybill.dev/release"

	// ResourceUIDAnnotation on an object in a user cluster is the UID of the
	// KubernetesApplicationResource that delivers it. It is for people: ownership is decided by
	// OwnerAnnotation.
	ResourceUIDAnnotation = "kubernetesapplicationresource.apps.waybill.dev/uid"

	// KubernetesApplicationLabel is on every KubernetesApplicationResource that an application
	// created. Its value is the name of the application.
	KubernetesApplicationLabel = "apps.waybill.dev/kubernetesapplication"

	// TemplatedAnnotation on a KubernetesApplicationResource lists the labels and annotations that
	// come from its template, so that those that leave the template are removed and those of others
	// stay.
	TemplatedAnnotation = "apps.waybill.dev/templated"

	// ApplicationAnnotation names the Application that an object belongs to. An empty value means
	// that the object belongs to none.
	ApplicationAnnotation = "kubernetes.io/application"

	// InjectedAnnotation records that Waybill wrote ApplicationAnnotation: while both name the same
	// Application, membership follows labels and selectors. If they differ, another client set
	// ApplicationAnnotation, and that choice wins.
	InjectedAnnotation = "apps.waybill.dev/injected"

	// HeldByAnnotation on an object names, as NAMESPACE/NAME, the ApplicationRollback that holds it.
	// It counts only if the status of that ApplicationRollback lists the object.
	HeldByAnnotation = "apps.waybill.dev/held-by"

	// BeforeUpgradeLabel is on the ApplicationSnapshots that were taken before upgrades: the name of the
	// installation. Without it, a snapshot is not deleted when newer ones are there.
	BeforeUpgradeLabel = "apps.waybill.dev/before-upgrade-of"

	// UpgradeRollbackLabel is on the ApplicationRollbacks of upgrades that failed: the name of the installation.
	// Without it, one is not deleted when newer ones are there.
	UpgradeRollbackLabel = "apps.waybill.dev/upgrade-rollback-of"

	// RequestedAtAnnotation is on the ApplicationSnapshots from before upgrades: what the annotation reconcile-at of the installation was.
	RequestedAtAnnotation = "apps.waybill.dev/requested-at"

	// SnapshotGroupLabel is on claims while a VolumeGroupSnapshot of them is taken, which selects them by
	// it.
	SnapshotGroupLabel = "apps.waybill.dev/snapshot-group"

	// RestoredByAnnotation is the UID of the StatefulApplication that created an object from a snapshot.
	RestoredByAnnotation = "apps.waybill.dev/restored-by"

	// RestoredClaimsAnnotation on an ApplicationInstallation that was restored lists the
	// PersistentVolumeClaims, separated by commas, that were restored for it. It is not installed for the
	// first time unless the objects that it renders use all of them.
	RestoredClaimsAnnotation = "apps.waybill.dev/restored-claims"

	// SnapshotUIDLabel is on the VolumeSnapshots and VolumeGroupSnapshots of a snapshot, and on the Secrets
	// that hold its definitions. Its value is the UID of the ApplicationSnapshot.
	SnapshotUIDLabel = "apps.waybill.dev/snapshot-uid"

	// DeliveryAnnotation is on the definitions of a snapshot that were delivered by an
	// ApplicationInstallation or a GitSync, and on that ApplicationInstallation: what the snapshot keeps
	// of the status, as JSON. Objects in a cluster do not have it.
	DeliveryAnnotation = "apps.waybill.dev/delivery"

	// HealthCheckLabel is on the Pod of an Application's health check. Its value is the name of the
	// Application, shortened if that is not a valid label value.
	HealthCheckLabel = "apps.waybill.dev/health-check"

	// PartOfLabel is injected together with ApplicationAnnotation if it is absent.
	PartOfLabel = "app.kubernetes.io/part-of"
)

// OwnershipFinalizer holds an Application until the Pod of its health check is deleted, and
// until only its components refer to it as an owner: otherwise the garbage collector would delete
// objects that are not listed.
const OwnershipFinalizer = "apps.waybill.dev/ownership"

// Finalizer holds an object of our kinds until everything that it delivered is gone.
const Finalizer = "apps.waybill.dev/finalizer"

// FieldManager is the server-side apply field manager of everything that Waybill delivers, and
// HelmFieldManager that of everything that Helm writes on its behalf.
const (
	FieldManager     = "waybill"
	HelmFieldManager = "waybill-helm"
)

// OwnershipFieldManager is the field manager of ownerReferences and marks that the
// Application controller writes on components.
const OwnershipFieldManager = "waybill-application"

const (
	// DefaultSystemNamespace is the namespace in which Waybill runs and keeps its own objects
	// unless --system-namespace says otherwise.
	DefaultSystemNamespace = "waybill-system"

	// HubConfigMap is the ConfigMap of the system namespace whose key HubIDKey
	// holds the id of the hub, a UUID. It belongs in every backup.
	HubConfigMap = "waybill-hub"

	// HubIDKey is the key of HubConfigMap.
	HubIDKey = "id"
)
