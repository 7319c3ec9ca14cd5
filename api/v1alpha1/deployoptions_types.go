package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TargetNamespace is the namespace that a workload is installed into.
type TargetNamespace struct {
	// Name of the namespace.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Create the namespace if it does not exist. Default: false.
	// +optional
	Create bool `json:"create,omitempty"`

	// Labels to set on the namespace.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations to set on the namespace.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ValuesReference names a ConfigMap or Secret with values.
type ValuesReference struct {
	// Kind of the object.
	// +required
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`

	// Name of the object, in the installation's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key that holds the values as YAML. Default: values.yaml.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// Optional allows the object or the key to be absent. Default: false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// DeployOptions holds the options of each method.
type DeployOptions struct {
	// Helm options; ignored by other methods.
	// +optional
	Helm *HelmDeployOptions `json:"helm,omitempty"`
}

// CRDPolicy defines how the CRDs of a chart are handled.
// +kubebuilder:validation:Enum=CreateReplace;Create;Skip
type CRDPolicy string

const (
	// CRDCreateReplace creates CRDs, and upgrades those that the installation created.
	CRDCreateReplace CRDPolicy = "CreateReplace"

	// CRDCreate creates CRDs that do not exist and never upgrades them.
	CRDCreate CRDPolicy = "Create"

	// CRDSkip leaves CRDs alone.
	CRDSkip CRDPolicy = "Skip"
)

// DriftDetection defines what happens when another user or controller changes an object of a release.
// +kubebuilder:validation:Enum=Enabled;Warn;Disabled
type DriftDetection string

const (
	// DriftEnabled corrects drift.
	DriftEnabled DriftDetection = "Enabled"

	// DriftWarn reports drift without correcting it.
	DriftWarn DriftDetection = "Warn"

	// DriftDisabled does not look for drift.
	DriftDisabled DriftDetection = "Disabled"
)

// HelmDeployOptions are the options of method helm.
// +kubebuilder:validation:XValidation:rule="!has(self.atomic) || !self.atomic || (has(self.wait) && self.wait)",message="atomic requires wait"
type HelmDeployOptions struct {
	// Wait makes an install or upgrade fail if its objects are not healthy within timeout. Without
	// it, Ready follows their health however long that takes. Default: false.
	// +optional
	Wait bool `json:"wait,omitempty"`

	// Timeout of one Helm action including its hooks, and of wait. Default: 5m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9.]+(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('1s')",message="must be 1s or more, in hours, minutes and seconds: 24h, 1h30m, 90s"
	Timeout metav1.Duration `json:"timeout,omitzero"`

	// Atomic rolls back a failed upgrade, with the data where a snapshot was taken before it, and uninstalls
	// a failed install. Requires wait. Default: false.
	// +optional
	Atomic bool `json:"atomic,omitempty"`

	// CRDs defines how the CRDs of the chart are handled. Create creates those that do not exist and
	// never upgrades them; CreateReplace also upgrades those that the installation created, unless
	// versions or fields would be removed; Skip leaves them alone. Default: Create.
	// +optional
	CRDs CRDPolicy `json:"crds,omitempty"`

	// DisableHooks skips all hooks. Default: false.
	// +optional
	DisableHooks bool `json:"disableHooks,omitempty"`

	// HistoryLimit is the number of revisions to keep. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	HistoryLimit int32 `json:"historyLimit,omitempty"`

	// DriftDetection defines what is done when another user or controller changes an object of the release.
	// Enabled corrects it; Warn reports it; Disabled ignores it. Default: Enabled.
	// +optional
	DriftDetection DriftDetection `json:"driftDetection,omitempty"`
}
