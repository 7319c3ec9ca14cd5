package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ApplicationInstallationKind is the kind of an ApplicationInstallation.
const ApplicationInstallationKind = "ApplicationInstallation"

// ApplicationInstallationSpec defines which application to install, where, and with which values.
// +kubebuilder:validation:XValidation:rule="!(has(self.values) && has(self.valuesBlock))",message="at most one of values and valuesBlock may be set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.__namespace__) || (has(self.__namespace__) && self.__namespace__.name == oldSelf.__namespace__.name)",message="namespace.name is immutable: delete and recreate the installation"
type ApplicationInstallationSpec struct {
	// ApplicationRef names the definition and its version.
	// +required
	ApplicationRef ApplicationReference `json:"applicationRef"`

	// Namespace to install the workload into; its name is immutable. Default: the
	// definition's defaultNamespace, otherwise the namespace of the installation. One that was
	// defaulted can be filled in later, but not changed.
	// +optional
	Namespace *TargetNamespace `json:"namespace,omitempty"`

	// Values override those of the version. They are plain data: templates in them are
	// executed only where the chart itself passes a value to tpl.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Values *apiextensionsv1.JSON `json:"values,omitempty"`

	// ValuesBlock is the same as values, written as a block of YAML to preserve comments.
	// +optional
	// +kubebuilder:validation:MaxLength=524288
	ValuesBlock string `json:"valuesBlock,omitempty"`

	// ValuesFrom lists sources of values in the installation's namespace. Later ones override
	// earlier ones; values and valuesBlock override them all.
	// Unless the installation acts as a ServiceAccount, each needs the label
	// `apps.waybill.dev/values: protected`.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	ValuesFrom []ValuesReference `json:"valuesFrom,omitempty"`

	// ReconciliationInterval forces a full comparison with the cluster at this interval. Watches
	// detect drift in any case. Default: 0s, never.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9.]+(ns|us|ms|s|m|h))+)$') && (duration(self) == duration('0s') || duration(self) >= duration('1s'))",message="must be 0s, or 1s or more, in hours, minutes and seconds: 24h, 1h30m, 90s"
	ReconciliationInterval metav1.Duration `json:"reconciliationInterval,omitzero"`

	// IgnoreDifferences names fields that others set, such as the replicas of what an autoscaler scales.
	// The source sets them when an object is created; from then on, upgrades included, they are left as
	// they are. When an entry is removed, what the source says is set again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	IgnoreDifferences []IgnoredDifference `json:"ignoreDifferences,omitempty"`

	// DeployOptions are the options of the method.
	// +optional
	DeployOptions *DeployOptions `json:"deployOptions,omitempty"`

	// ServiceAccountName is the ServiceAccount in the installation's namespace that is impersonated
	// for everything that the method reads and writes in the cluster: records of releases, objects,
	// CRDs, hooks, the target namespace, and what templates look up. Default: the definition's
	// serviceAccountName, otherwise that of `--default-service-account`, otherwise Waybill's own
	// identity. An installation that has acted as a ServiceAccount goes on doing so until another one
	// is named.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// DependsOn lists other installations of the cluster. Each must be ready before this one is installed,
	// and before each upgrade of it. What is installed stays, and is corrected, whatever becomes of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	DependsOn []InstallationDependency `json:"dependsOn,omitempty"`

	// BeforeUpgrade defines what is done before an upgrade of what is installed. Default: what the wanted
	// version of the definition says.
	// +optional
	BeforeUpgrade *BeforeUpgrade `json:"beforeUpgrade,omitempty"`

	// DeletionPolicy defines what becomes of what is installed when the installation is deleted: Delete
	// uninstalls it, Orphan leaves all of it as it is, the Helm release included, for another tool to manage.
	// Only the Application that describes it is deleted then. Default: Delete.
	// +optional
	DeletionPolicy InstallationDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// InstallationDeletionPolicy is what becomes of what is installed when its ApplicationInstallation is deleted.
// +kubebuilder:validation:Enum=Delete;Orphan
type InstallationDeletionPolicy string

const (
	// InstallationDelete uninstalls it.
	InstallationDelete InstallationDeletionPolicy = "Delete"
	// InstallationOrphan leaves it as it is.
	InstallationOrphan InstallationDeletionPolicy = "Orphan"
)

// InstallationDependency names an installation that another one waits for.
type InstallationDependency struct {
	// Name of the ApplicationInstallation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Name string `json:"name"`

	// Namespace of it. Default: that of the installation that depends on it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Condition in CEL that must be true of it, with `self.metadata`, `self.spec` without values, and
	// `self.status`. Default: it is ready in its current generation, in the version that its spec wants.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Condition string `json:"condition,omitempty"`
}

// SnapshotPolicy says whether a snapshot is taken.
// +kubebuilder:validation:Enum=Require;Try;Never
type SnapshotPolicy string

const (
	// SnapshotRequire takes a snapshot, and does not go on without.
	SnapshotRequire SnapshotPolicy = "Require"

	// SnapshotTry takes a snapshot, and goes on without if it fails.
	SnapshotTry SnapshotPolicy = "Try"

	// SnapshotNever takes none.
	SnapshotNever SnapshotPolicy = "Never"
)

// BeforeUpgrade defines what is done before an upgrade.
type BeforeUpgrade struct {
	// Snapshot says whether an ApplicationSnapshot is taken before an upgrade. It needs a
	// StatefulApplication of the application in the target namespace.
	// +required
	Snapshot SnapshotPolicy `json:"snapshot"`

	// ApplicationSnapshotClassName is the ApplicationSnapshotClass of the snapshot. Default: the class with
	// the annotation apps.waybill.dev/is-default-class.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ApplicationSnapshotClassName string `json:"applicationSnapshotClassName,omitempty"`
}

// ApplicationReference names a definition and one of its versions.
type ApplicationReference struct {
	// Name of the ApplicationDefinition. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="applicationRef.name is immutable: delete and recreate the installation"
	Name string `json:"name"`

	// Version of the definition. Default: the definition's defaultVersion, filled in when
	// the installation is created.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
}

// ResolvedApplication is what an installation was resolved to. It is kept so that the installation
// can be uninstalled after the definition is gone.
type ResolvedApplication struct {
	// Name of the definition.
	// +required
	Name string `json:"name"`

	// Version of the definition.
	// +required
	Version string `json:"version"`

	// Method of the definition.
	// +required
	Method Method `json:"method"`

	// Namespace of the workload.
	// +required
	Namespace string `json:"namespace"`

	// ServiceAccountName is the ServiceAccount in the installation's namespace that is acted as; empty
	// for Waybill's own identity.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Revision of the source: the chart's version, or a git revision.
	// +optional
	Revision string `json:"revision,omitempty"`
}

// ReleaseHold says that an ApplicationRollback holds an installation: nothing is installed or corrected
// until something else is wanted, or the hold ends.
type ReleaseHold struct {
	// Rollback is the name of the ApplicationRollback, in the namespace of the installation; `snapshot:` and
	// the name of an ApplicationSnapshot while that has scaled the application to zero.
	// +required
	Rollback string `json:"rollback"`

	// RollbackUID is its UID.
	// +optional
	RollbackUID types.UID `json:"rollbackUID,omitempty"`

	// Since is when it was found that the installation is held.
	// +required
	Since metav1.Time `json:"since"`

	// Wanted identifies what was installed, or wanted, then: its input, and the revision of the source.
	// Empty: something else has been wanted since, and is installed, although the rollback still names the
	// installation.
	// +optional
	Wanted string `json:"wanted,omitempty"`

	// Revision that the Helm release is to be rolled back to, if any.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// RolledBack is true once the release was rolled back, or if that was not needed.
	// +optional
	RolledBack bool `json:"rolledBack,omitempty"`

	// Message says why the release could not be rolled back, if so.
	// +optional
	Message string `json:"message,omitempty"`
}

// Holds reports whether the installation is left as it is.
func (h *ReleaseHold) Holds() bool { return h != nil && h.Wanted != "" }

// ApplicationInstallationStatus reports what is installed in the cluster.
type ApplicationInstallationStatus struct {
	ReconcileStatus `json:",inline"`

	// Application that was resolved, and is installed or being installed.
	// +optional
	Application *ResolvedApplication `json:"application,omitempty"`

	// Release is the Helm release, for method helm.
	// +optional
	Release *ReleaseStatus `json:"release,omitempty"`

	// Rendering is the chart that is being rendered and installed, for method helm. It is written before
	// that begins, and unset when it ends. If it was interrupted, as by the end of the process, it waits
	// its turn behind others: longer each time.
	// +optional
	Rendering *RenderingStatus `json:"rendering,omitempty"`

	// History lists how installs, upgrades and rollbacks ended, newest first, at most 10. A further
	// attempt of what failed replaces the entry of the one before.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []InstallationRecord `json:"history,omitempty"`

	// HealthAwaitedSince is when what is installed was written, if deployOptions.helm.wait was set:
	// its timeout counts from then. It is unset from the first time that every object is healthy,
	// and stays so until something else is installed.
	// +optional
	HealthAwaitedSince *metav1.Time `json:"healthAwaitedSince,omitempty"`

	// GivenUp identifies what was rolled back or uninstalled because it did not become healthy in
	// time: its input, and the revision of the source. It is not installed again, unless something
	// changes or a reconciliation is requested.
	// +optional
	GivenUp string `json:"givenUp,omitempty"`

	// Begun identifies what was begun to be installed last, where that waits for other installations or for
	// a snapshot: its input, and the revision of the source. It does not wait again.
	// +optional
	Begun string `json:"begun,omitempty"`

	// UpgradeSnapshot is the ApplicationSnapshot that was taken before what was begun, until that is
	// healthy: with deployOptions.helm.atomic, an upgrade that fails goes back to it.
	// +optional
	UpgradeSnapshot *UpgradeSnapshot `json:"upgradeSnapshot,omitempty"`

	// UpgradeRollback is set once an upgrade has failed that goes back with its data, until something else
	// is installed.
	// +optional
	UpgradeRollback *UpgradeRollback `json:"upgradeRollback,omitempty"`

	// OptionalValues are the optional objects of spec.valuesFrom, as `<kind>/<name>`, that there were
	// when what is installed was. Unless the installation acts as a ServiceAccount, one that is deleted
	// is missed: users who may not install do not decide by that what is installed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	OptionalValues []string `json:"optionalValues,omitempty"`

	// Inventory of the objects of the installation.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`

	// AppliedDigest identifies the objects of the installation as they were last written: their manifests,
	// and when which of their fields were. As long as they match it, nothing is read or written after a
	// restart; unset if that is not known.
	// +optional
	AppliedDigest string `json:"appliedDigest,omitempty"`

	// Held lists, at most 500, the objects that an ApplicationRollback holds: they are left as they are
	// until what is wanted of them changes, or the hold ends.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Held []Hold `json:"held,omitempty"`

	// ReleaseHold is set while an ApplicationRollback holds the installation.
	// +optional
	ReleaseHold *ReleaseHold `json:"releaseHold,omitempty"`

	// Problems with individual objects, at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Problems []Problem `json:"problems,omitempty"`

	// Failures is the number of failures in a row since the last success. The delay before the next
	// attempt grows with it.
	// +optional
	Failures int32 `json:"failures,omitempty"`
}

// ApplicationInstallation installs one version of a definition into the cluster that it
// lives in.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=waybill,shortName=ai
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 53",message="the name is also that of the Helm release: at most 53 characters"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.__namespace__) || has(oldSelf.spec.__namespace__) || !has(oldSelf.status) || !has(oldSelf.status.application) || self.spec.__namespace__.name == oldSelf.status.application.__namespace__",message="namespace.name is immutable, and status.application says what it was resolved to: delete and recreate the installation",fieldPath=".spec.namespace.name"
// +kubebuilder:printcolumn:name="Definition",type=string,JSONPath=`.spec.applicationRef.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.application.version`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.application.namespace`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.release.revision`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ApplicationInstallation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines what to install.
	Spec ApplicationInstallationSpec `json:"spec"`

	// Status reports what is installed.
	// +kubebuilder:default={"observedGeneration":-1}
	Status ApplicationInstallationStatus `json:"status,omitempty"`
}

// ApplicationInstallationList is a list of ApplicationInstallations.
// +kubebuilder:object:root=true
type ApplicationInstallationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApplicationInstallation `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (i *ApplicationInstallation) GetReconcileStatus() *ReconcileStatus {
	return &i.Status.ReconcileStatus
}

// GetConditions returns the conditions of the status.
func (i *ApplicationInstallation) GetConditions() []metav1.Condition { return i.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (i *ApplicationInstallation) SetConditions(c []metav1.Condition) { i.Status.Conditions = c }
