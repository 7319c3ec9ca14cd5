package v1alpha1

// ReleaseStatus is the state of the Helm release of an installation.
type ReleaseStatus struct {
	// Name of the release.
	// +required
	Name string `json:"name"`

	// Namespace of the release.
	// +required
	Namespace string `json:"namespace"`

	// Revision of the release, from 1.
	// +required
	Revision int32 `json:"revision"`

	// Chart that is deployed, as `<name>-<version>`.
	// +optional
	Chart string `json:"chart,omitempty"`

	// Digest of everything that went into the release: chart, values, options.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Status of the release as Helm reports it, e.g. deployed, failed.
	// +optional
	Status string `json:"status,omitempty"`

	// RecordDigest is the digest of the revision's manifest and hooks as Waybill wrote them into
	// Helm's record in the target namespace. A record that differs is neither run nor applied.
	// +optional
	RecordDigest string `json:"recordDigest,omitempty"`

	// StoredDigest is the digest of the whole record as Waybill stored it. A record that differs is
	// decoded only within narrow bounds, to compare it with recordDigest.
	// +optional
	StoredDigest string `json:"storedDigest,omitempty"`

	// StoredVersion is the resourceVersion of the record as Waybill stored or last checked it. A record that
	// still has it is not read after a restart.
	// +optional
	StoredVersion string `json:"storedVersion,omitempty"`

	// Fallback is the revision that a rollback returns to.
	// +optional
	Fallback *ReleaseRecord `json:"fallback,omitempty"`

	// Earlier revisions whose records are known, at most 20: an ApplicationRollback may return to one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Earlier []ReleaseRecord `json:"earlier,omitempty"`

	// ServiceAccountName is the ServiceAccount that these revisions were made as; empty for Waybill's
	// own identity. Under another identity, their records are neither run nor applied.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// ReleaseRecord identifies Helm's record of a revision.
type ReleaseRecord struct {
	// Revision of the release, from 1.
	// +required
	Revision int32 `json:"revision"`

	// RecordDigest is the digest of the revision's manifest and hooks.
	// +required
	RecordDigest string `json:"recordDigest"`

	// StoredDigest is the digest of the whole record as Waybill stored it.
	// +optional
	StoredDigest string `json:"storedDigest,omitempty"`
}

// RenderingStatus says which chart is being rendered and installed.
type RenderingStatus struct {
	// Chart that is rendered, as `<name>-<version>`.
	// +required
	Chart string `json:"chart"`

	// Input identifies what is rendered: chart, values, options, and the revision of the source.
	// +required
	Input string `json:"input"`

	// Attempts is how often in a row this was begun and not brought to an end, this time included.
	// +required
	Attempts int32 `json:"attempts"`
}
