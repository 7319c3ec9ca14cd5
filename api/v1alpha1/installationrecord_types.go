package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxInstallationHistory is how many entries the history of an installation has at most.
const MaxInstallationHistory = 10

// InstallationOutcome is how an install, an upgrade or a rollback ended.
// +kubebuilder:validation:Enum=Deployed;Failed;RolledBack
type InstallationOutcome string

const (
	// InstallationDeployed: it was written to the cluster.
	InstallationDeployed InstallationOutcome = "Deployed"

	// InstallationFailed: it was not, or it did not become healthy in time and was given up.
	InstallationFailed InstallationOutcome = "Failed"

	// InstallationRolledBack: an earlier revision was written again.
	InstallationRolledBack InstallationOutcome = "RolledBack"
)

// InstallationRecord says how an install, an upgrade or a rollback of an installation ended.
type InstallationRecord struct {
	// Revision of the Helm release; for method kustomize, it counts from 1. Unset if a failure left
	// none.
	// +optional
	Revision int32 `json:"revision,omitempty"`

	// Version of the definition. Unset if it is not known which one a rollback returned to.
	// +optional
	Version string `json:"version,omitempty"`

	// SourceRevision is the version of the chart, or a git revision.
	// +optional
	SourceRevision string `json:"sourceRevision,omitempty"`

	// ValuesDigest is a digest of spec.values, spec.valuesBlock and spec.valuesFrom as they were
	// written, without the content of what valuesFrom names. Unset if there were none.
	// +optional
	ValuesDigest string `json:"valuesDigest,omitempty"`

	// SecretValues says that spec.valuesFrom named a Secret.
	// +optional
	SecretValues bool `json:"secretValues,omitempty"`

	// FinishedAt is when it ended.
	// +required
	FinishedAt metav1.Time `json:"finishedAt"`

	// Outcome is how it ended.
	// +required
	Outcome InstallationOutcome `json:"outcome"`

	// Message says why it failed or was rolled back, shortened.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ValuesDigest returns a digest of the values that the installation sets itself, and of the names of the
// objects that it takes others from; empty if it does neither.
func (i *ApplicationInstallation) ValuesDigest() string {
	s := &i.Spec
	if s.Values == nil && s.ValuesBlock == "" && len(s.ValuesFrom) == 0 {
		return ""
	}
	var own any
	if s.Values != nil && json.Unmarshal(s.Values.Raw, &own) != nil {
		own = string(s.Values.Raw)
	}
	text, err := json.Marshal([]any{own, s.ValuesBlock, s.ValuesFrom})
	if err != nil {
		return "" // what was decoded can be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// HasSecretValues reports whether the installation takes values from a Secret.
func (i *ApplicationInstallation) HasSecretValues() bool {
	return slices.ContainsFunc(i.Spec.ValuesFrom, func(r ValuesReference) bool { return r.Kind == "Secret" })
}
