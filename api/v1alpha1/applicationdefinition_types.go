package v1alpha1

import (
	"slices"
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
// +kubebuilder:validation:XValidation:rule="!(has(self.default) && self.default && has(self.enforced) && self.enforced)",message="at most one of default and enforced may be set"
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

	// ForbidOrphan refuses deletionPolicy Orphan of installations: with it, a user of a cluster keeps what
	// is installed, and the rights that it was installed with, when the installation is deleted. Default:
	// false. Orphan is always refused while enforced is set.
	// +optional
	ForbidOrphan bool `json:"forbidOrphan,omitempty"`

	// ClusterSelector selects the KubernetesClusters that the definition is offered to: those of the hub,
	// and those of each seed. A seed itself gets every definition. Default: every cluster.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Default installs the application once in each cluster that the definition is offered to; it may be
	// removed there, and does not come back. Default: false.
	// +optional
	Default bool `json:"default,omitempty"`

	// Enforced keeps the application installed in each cluster that the definition is offered to, in
	// defaultVersion, or else in the newest version that is not deprecated. It comes back if it is
	// deleted or edited there. Default: false.
	// +optional
	Enforced bool `json:"enforced,omitempty"`

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
	// keeps in user clusters. The copies in seeds have it.
	// +optional
	Template *ApplicationTemplate `json:"template,omitempty"`
}

// VersionUsage lists the installations that use one version of a definition.
type VersionUsage struct {
	// Version in use.
	// +required
	Version string `json:"version"`

	// Count of the installations that use it, listed or not.
	// +required
	Count int32 `json:"count"`

	// Installations that use it, as `<cluster namespace>/<cluster>/<namespace>/<name>`, sorted, at
	// most 20. Those in a cluster of a seed begin with `<seed's namespace>/<seed>/`.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Installations []string `json:"installations,omitempty"`
}

// UnprovidedCluster is a cluster without the installation that default or enforced asks for.
type UnprovidedCluster struct {
	// Cluster, as `<namespace>/<name>` of its KubernetesCluster.
	// +required
	Cluster string `json:"cluster"`

	// Problem is why.
	// +required
	Problem string `json:"problem"`
}

// ApplicationDefinitionStatus reports where a definition is offered and used.
type ApplicationDefinitionStatus struct {
	ReconcileStatus `json:",inline"`

	// UsedBy lists the installations that use each version, as last seen in the clusters.
	// +optional
	// +listType=map
	// +listMapKey=version
	UsedBy []VersionUsage `json:"usedBy,omitempty"`

	// Unprovided lists clusters in which the installation that default or enforced asks for does not exist,
	// or is not as wanted, sorted, at most 20.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=20
	Unprovided []UnprovidedCluster `json:"unprovided,omitempty"`

	// Clusters is the number of clusters that hold a copy.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`

	// Versions is a summary for tables: newest first, deprecated ones only if there are no others,
	// at most five by name. Copies have it too.
	// +optional
	Versions string `json:"versions,omitempty"`

	// ValuesSchemas says which schema the values of each version are checked against when an
	// installation is written. Copies have it too.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=100
	ValuesSchemas []ValuesSchema `json:"valuesSchemas,omitempty"`
}

// ValuesSchema is what is known of the schema of one version: the values.schema.json of its chart and of
// its subcharts.
type ValuesSchema struct {
	// Version of the definition.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`

	// Source identifies the chart that was read.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Source string `json:"source"`

	// Digest of the schema, which is a key of ConfigMap `waybill-schemas-<definition>` in the system
	// namespace; empty if the chart has none.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`

	// Message says why values are not checked although the chart has a schema.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
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

// GetValuesSchema returns what is known of the schema of a version; nil if nothing is.
func (d *ApplicationDefinition) GetValuesSchema(version string) *ValuesSchema {
	for i := range d.Status.ValuesSchemas {
		if d.Status.ValuesSchemas[i].Version == version {
			return &d.Status.ValuesSchemas[i]
		}
	}
	return nil
}

// GetSecrets returns the names of the Secrets in the system namespace that the sources of all versions name, sorted.
func (d *ApplicationDefinition) GetSecrets() []string {
	var names []string
	for i := range d.Spec.Versions {
		if t := d.Spec.Versions[i].Template; t != nil {
			names = append(names, t.Source.GetSecrets()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
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

// IsProvided reports whether clusters are given an installation of the definition, by default or enforced.
func (d *ApplicationDefinition) IsProvided() bool { return d.Spec.Default || d.Spec.Enforced }

// ForbidsOrphan reports whether installations of the definition must not have deletionPolicy Orphan.
func (d *ApplicationDefinition) ForbidsOrphan() bool { return d.Spec.ForbidOrphan || d.Spec.Enforced }

// IsCopy reports whether this is a copy of a hub's definition, in a user cluster or in a seed. It is
// changed in the hub alone.
func (d *ApplicationDefinition) IsCopy() bool {
	_, ok := d.Annotations[CopyOfAnnotation]
	return ok
}

// InCatalog reports whether applications are installed from this definition where it is: it is no copy, or one in a
// seed, which has the template of each version. A copy in a user cluster has none: it only says what is offered.
func (d *ApplicationDefinition) InCatalog() bool {
	return !d.IsCopy() || !slices.ContainsFunc(d.Spec.Versions, func(v ApplicationVersion) bool { return v.Template == nil })
}
