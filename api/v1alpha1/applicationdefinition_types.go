package v1alpha1

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApplicationDefinitionKind is the kind of an ApplicationDefinition.
const ApplicationDefinitionKind = "ApplicationDefinition"

// Method defines how the files of a source become objects in a cluster.
// +kubebuilder:validation:Enum=helm;kustomize
type Method string

const (
	// MethodHelm installs a chart as a Helm release.
	MethodHelm Method = "helm"

	// MethodKustomize builds a kustomization and applies it.
	MethodKustomize Method = "kustomize"
)

// ApplicationDefinitionSpec describes one entry of the catalog with all its versions.
// +kubebuilder:validation:XValidation:rule="self.method == 'helm' || self.versions.all(v, !has(v.template) || !has(v.template.source.helm))",message="a helm source requires method helm"
// +kubebuilder:validation:XValidation:rule="!has(self.defaultVersion) || size(self.defaultVersion) == 0 || self.versions.exists(v, v.version == self.defaultVersion)",message="defaultVersion must be one of versions"
type ApplicationDefinitionSpec struct {
	// DisplayName is the name shown to people. Default: the name of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DisplayName string `json:"displayName,omitempty"`

	// Description of the application in a sentence or two.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`

	// DocumentationURL links to the documentation of the application.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	DocumentationURL string `json:"documentationURL,omitempty"`

	// SourceURL links to the source code of the application.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	SourceURL string `json:"sourceURL,omitempty"`

	// Logo of the application, base64.
	// +optional
	Logo *Logo `json:"logo,omitempty"`

	// Method of all versions: helm or kustomize. Immutable. Default: helm.
	// +optional
	// +kubebuilder:default=helm
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="method is immutable"
	Method Method `json:"method,omitempty"`

	// DefaultValues apply to all versions; the values of a version override them.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	DefaultValues *apiextensionsv1.JSON `json:"defaultValues,omitempty"`

	// DefaultNamespace is the target of installations that name no namespace. Default: the
	// namespace of the installation.
	// +optional
	DefaultNamespace *TargetNamespace `json:"defaultNamespace,omitempty"`

	// DefaultVersion is filled in when an installation is created that names no version.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	DefaultVersion string `json:"defaultVersion,omitempty"`

	// DefaultDeployOptions apply to installations that set none.
	// +optional
	DefaultDeployOptions *DeployOptions `json:"defaultDeployOptions,omitempty"`

	// ServiceAccountName is the ServiceAccount that installations act as which name none. Each of
	// their namespaces must have one of that name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// RequireServiceAccount refuses installations that act as no ServiceAccount. Default: false.
	// +optional
	RequireServiceAccount bool `json:"requireServiceAccount,omitempty"`

	// AllowLookup lets the templates of installations that act as no ServiceAccount look up any object
	// of the cluster, Secrets included, with Waybill's own rights. Values that a chart passes to `tpl`
	// can do the same. Default: false: the template function lookup finds nothing.
	// +optional
	AllowLookup bool `json:"allowLookup,omitempty"`

	// ClusterSelector selects the KubernetesClusters that the definition is offered to.
	// Default: every cluster.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Requires lists other definitions. Before an installation of this one is installed or upgraded, one of
	// each of those must be ready in the same cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Requires []ApplicationRequirement `json:"requires,omitempty"`

	// Versions on offer, each listed once.
	// +required
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Versions []ApplicationVersion `json:"versions"`
}

// ApplicationRequirement names a definition that another one needs.
type ApplicationRequirement struct {
	// Name of the ApplicationDefinition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Version is a range of versions that fit, such as `>= 1.2` or `1.x`, as Helm has it for the
	// dependencies of charts. Default: any.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
}

// Logo is a picture in a format that browsers can show.
type Logo struct {
	// Format of the picture.
	// +required
	// +kubebuilder:validation:Enum=svg+xml;png
	Format string `json:"format"`

	// Data of the picture, at most 64 KiB.
	// +required
	// +kubebuilder:validation:MaxLength=87384
	Data []byte `json:"data"`
}

// ApplicationVersion is one version of an application.
type ApplicationVersion struct {
	// Version is the name that installations refer to. Versions that are equal as semantic versions
	// count as one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`

	// Deprecated warns users who start to use this version. Default: false.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`

	// ClusterFacts provides facts about the cluster as Helm values under `.Values.waybill.cluster`:
	// name, labels, version. Default: false.
	// +optional
	ClusterFacts bool `json:"clusterFacts,omitempty"`

	// BeforeUpgrade defines what is done before what is installed is upgraded to this version, where an
	// installation does not say it.
	// +optional
	BeforeUpgrade *BeforeUpgrade `json:"beforeUpgrade,omitempty"`

	// Template defines where the version comes from. Required, except in the copies that Waybill
	// keeps in user clusters.
	// +optional
	Template *ApplicationTemplate `json:"template,omitempty"`
}

// ApplicationTemplate defines where a version comes from and its values.
type ApplicationTemplate struct {
	// Source of the files.
	// +required
	Source ApplicationSource `json:"source"`

	// Values override defaultValues, and are overridden by those of an installation.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// ApplicationSource is either helm or git.
// +kubebuilder:validation:XValidation:rule="has(self.helm) != has(self.git)",message="exactly one of helm and git must be set"
type ApplicationSource struct {
	// Helm names a chart in a Helm repository or an OCI registry.
	// +optional
	Helm *HelmSource `json:"helm,omitempty"`

	// Git names a folder in a git repository: a chart for method helm, or a kustomization or plain
	// manifests for method kustomize.
	// +optional
	Git *GitSource `json:"git,omitempty"`
}

// HelmSource is a chart in a Helm repository or an OCI registry.
// +kubebuilder:validation:XValidation:rule="!has(self.plainHTTP) || !self.plainHTTP || self.url.startsWith('oci://')",message="plainHTTP is for oci:// only"
// +kubebuilder:validation:XValidation:rule="!has(self.credentials) || !self.url.startsWith('http://')",message="credentials are never sent over http: use https or oci"
// +kubebuilder:validation:XValidation:rule="!has(self.credentials) || !has(self.plainHTTP) || !self.plainHTTP",message="credentials are never sent over http: leave out plainHTTP"
type HelmSource struct {
	// URL of the repository (https://, http://) or registry (oci://).
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|oci)://[^\s]+$`
	URL string `json:"url"`

	// ChartName is the name of the chart within the repository.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ChartName string `json:"chartName"`

	// ChartVersion is the exact version of the chart.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ChartVersion string `json:"chartVersion"`

	// Credentials of the repository.
	// +optional
	Credentials *SourceCredentials `json:"credentials,omitempty"`

	// CASecretRef names a Secret in the system namespace whose key ca.crt holds the certificate
	// authorities to trust.
	// +optional
	CASecretRef *LocalReference `json:"caSecretRef,omitempty"`

	// PlainHTTP accesses an OCI registry without TLS, and so without credentials. Default: false.
	// +optional
	PlainHTTP bool `json:"plainHTTP,omitempty"`

	// InsecureSkipTLS skips verification of the server's certificate. Default: false.
	// +optional
	InsecureSkipTLS bool `json:"insecureSkipTLS,omitempty"`
}

// GitSource is a folder in a git repository.
// +kubebuilder:validation:XValidation:rule="!has(self.credentials) || !self.remote.startsWith('http://')",message="credentials are never sent over http: use https or ssh"
type GitSource struct {
	// Remote is the URL of the repository: https://, http:// or ssh://, or git@host:path.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^((https?|ssh)://[^\s]+|[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:[^\s]+)$`
	Remote string `json:"remote"`

	// Ref selects the commit. Default: the branch that HEAD names.
	// +optional
	Ref *GitReference `json:"ref,omitempty"`

	// Path of the folder, so that one repository can hold many applications.
	// Default: the root of the repository.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`

	// Credentials of the repository.
	// +optional
	Credentials *SourceCredentials `json:"credentials,omitempty"`
}

// SourceCredentials names where the credentials for a source are.
type SourceCredentials struct {
	// SecretRef names a Secret in the system namespace that carries the annotation
	// apps.waybill.dev/secret-type. Its keys are, for helm, username and password, or
	// registryConfigFile; for git, those of GitSync's secretRef.
	// +required
	SecretRef LocalReference `json:"secretRef"`
}

// VersionUsage lists the installations that use one version of a definition.
type VersionUsage struct {
	// Version in use.
	// +required
	Version string `json:"version"`

	// Count of the installations that use it, listed or not.
	// +required
	Count int32 `json:"count"`

	// Installations that use it, as `<cluster namespace>/<cluster>/<namespace>/<name>`,
	// sorted, at most 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Installations []string `json:"installations,omitempty"`
}

// ApplicationDefinitionStatus reports where a definition is offered and used.
type ApplicationDefinitionStatus struct {
	ReconcileStatus `json:",inline"`

	// UsedBy lists the installations that use each version, as last seen in the clusters.
	// +optional
	// +listType=map
	// +listMapKey=version
	UsedBy []VersionUsage `json:"usedBy,omitempty"`

	// Clusters is the number of clusters that hold a copy.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`

	// Versions is a summary for tables: newest first, deprecated ones only if there are no others,
	// at most five by name. Copies have it too.
	// +optional
	Versions string `json:"versions,omitempty"`
}

// ApplicationDefinition is one entry of the catalog: an application with all its versions.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=waybill,shortName=ad
// +kubebuilder:printcolumn:name="Method",type=string,JSONPath=`.spec.method`
// +kubebuilder:printcolumn:name="Versions",type=string,JSONPath=`.status.versions`
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.defaultVersion`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ApplicationDefinition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the entry of the catalog.
	Spec ApplicationDefinitionSpec `json:"spec"`

	// Status reports where it is offered and used.
	// +kubebuilder:default={"observedGeneration":-1}
	Status ApplicationDefinitionStatus `json:"status,omitempty"`
}

// ApplicationDefinitionList is a list of ApplicationDefinitions.
// +kubebuilder:object:root=true
type ApplicationDefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApplicationDefinition `json:"items"`
}

// GetReconcileStatus returns the part of the status that every kind shares.
func (d *ApplicationDefinition) GetReconcileStatus() *ReconcileStatus {
	return &d.Status.ReconcileStatus
}

// GetConditions returns the conditions of the status.
func (d *ApplicationDefinition) GetConditions() []metav1.Condition { return d.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (d *ApplicationDefinition) SetConditions(c []metav1.Condition) { d.Status.Conditions = c }

// GetMethod returns the method; helm if none is set.
func (d *ApplicationDefinition) GetMethod() Method {
	if d.Spec.Method == "" {
		return MethodHelm
	}
	return d.Spec.Method
}

// GetVersion returns the version of exactly that name, or else the one that differs from it by a
// leading v alone, or nil if there is neither.
func (d *ApplicationDefinition) GetVersion(version string) *ApplicationVersion {
	var same *ApplicationVersion
	for i := range d.Spec.Versions {
		switch v := &d.Spec.Versions[i]; {
		case v.Version == version:
			return v
		case same == nil && SameVersion(v.Version, version):
			same = v
		}
	}
	return same
}

// SameVersion reports whether two names mean one version: v1.0.0 is 1.0.0.
func SameVersion(a, b string) bool { return a == b || bareVersion(a) == bareVersion(b) }

// bareVersion returns the name of a version without a v in front of its number.
func bareVersion(version string) string {
	bare, found := strings.CutPrefix(version, "v")
	if found && bare != "" && bare[0] >= '0' && bare[0] <= '9' {
		return bare
	}
	return version
}

// IsCopy reports whether this is a copy of a hub's definition in a user cluster.
func (d *ApplicationDefinition) IsCopy() bool {
	_, ok := d.Annotations[CopyOfAnnotation]
	return ok
}
