package v1alpha1

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

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

// GetSecrets returns the names of the Secrets in the system namespace that the source names.
func (s *ApplicationSource) GetSecrets() []string {
	var names []string
	if s.Helm != nil {
		names = s.Helm.Credentials.appendName(names)
		if s.Helm.CASecretRef != nil {
			names = append(names, s.Helm.CASecretRef.Name)
		}
	}
	if s.Git != nil {
		names = s.Git.Credentials.appendName(names)
	}
	return names
}

func (c *SourceCredentials) appendName(names []string) []string {
	if c == nil {
		return names
	}
	return append(names, c.SecretRef.Name)
}
