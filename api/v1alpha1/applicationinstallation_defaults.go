package v1alpha1

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// GetVersion returns the version of the definition that is wanted: the one that the installation
// names, or else the one that it was resolved to, or else the definition's default. A default that
// changes later upgrades no installation. Empty if there is none. definition may be nil.
func (i *ApplicationInstallation) GetVersion(definition *ApplicationDefinition) string {
	ref := i.Spec.ApplicationRef
	if ref.Version != "" {
		return ref.Version
	}
	if resolved := i.Status.Application; resolved != nil && resolved.Name == ref.Name {
		return resolved.Version
	}
	if definition == nil {
		return ""
	}
	return definition.Spec.DefaultVersion
}

// GetTarget returns the namespace that the workload is installed into, as set by the installation
// or else by its definition. A default that changes later does not move existing
// installations. definition may be nil.
func (i *ApplicationInstallation) GetTarget(definition *ApplicationDefinition) TargetNamespace {
	if i.Spec.Namespace != nil {
		return *i.Spec.Namespace
	}
	target := TargetNamespace{Name: i.Namespace}
	if definition != nil && definition.Spec.DefaultNamespace != nil {
		target = *definition.Spec.DefaultNamespace
	}
	if resolved := i.Status.Application; resolved != nil && resolved.Namespace != target.Name {
		return TargetNamespace{Name: resolved.Namespace}
	}
	return target
}

// GetServiceAccountName returns the ServiceAccount in the installation's namespace that it acts as:
// its own, or else that of its definition, or else fallback; empty for Waybill's own identity. One that
// it has acted as before comes last, so that nothing gains rights by no longer being named. definition
// may be nil.
func (i *ApplicationInstallation) GetServiceAccountName(definition *ApplicationDefinition, fallback string) string {
	offered, before := "", ""
	if definition != nil {
		offered = definition.Spec.ServiceAccountName
	}
	if i.Status.Application != nil {
		before = i.Status.Application.ServiceAccountName
	}
	return cmp.Or(i.Spec.ServiceAccountName, offered, fallback, before)
}

// GetHelmOptions returns the Helm options of the installation, or else those of its definition; nil
// means defaults. definition may be nil.
func (i *ApplicationInstallation) GetHelmOptions(definition *ApplicationDefinition) *HelmDeployOptions {
	if o := i.Spec.DeployOptions; o != nil && o.Helm != nil {
		return o.Helm
	}
	if definition != nil && definition.Spec.DefaultDeployOptions != nil {
		return definition.Spec.DefaultDeployOptions.Helm
	}
	return nil
}

// GetBeforeUpgrade returns what is done before an upgrade to a version of the definition, which may be
// nil: what the installation says, or else the version; snapshot Never if neither does.
func (i *ApplicationInstallation) GetBeforeUpgrade(version *ApplicationVersion) BeforeUpgrade {
	switch {
	case i.Spec.BeforeUpgrade != nil:
		return *i.Spec.BeforeUpgrade
	case version != nil && version.BeforeUpgrade != nil:
		return *version.BeforeUpgrade
	default:
		return BeforeUpgrade{Snapshot: SnapshotNever}
	}
}

// GetKey returns the key of the installation that an installation of a namespace depends on.
func (d InstallationDependency) GetKey(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(d.Namespace, namespace), Name: d.Name}
}

// GetKey returns the key that holds the values; values.yaml if none is set.
func (v ValuesReference) GetKey() string {
	if v.Key == "" {
		return "values.yaml"
	}
	return v.Key
}

// GetTimeout returns the timeout; 5 minutes if none is set.
func (o *HelmDeployOptions) GetTimeout() time.Duration {
	if o == nil {
		return 5 * time.Minute
	}
	return durationOr(o.Timeout, 5*time.Minute)
}

// GetCRDs returns the CRD policy; Create if none is set.
func (o *HelmDeployOptions) GetCRDs() CRDPolicy {
	if o == nil || o.CRDs == "" {
		return CRDCreate
	}
	return o.CRDs
}

// GetHistoryLimit returns the number of revisions to keep; 5 if none is set.
func (o *HelmDeployOptions) GetHistoryLimit() int {
	if o == nil || o.HistoryLimit == 0 {
		return 5
	}
	return int(o.HistoryLimit)
}

// GetDriftDetection returns what to do about drift; Enabled if nothing is set.
func (o *HelmDeployOptions) GetDriftDetection() DriftDetection {
	if o == nil || o.DriftDetection == "" {
		return DriftEnabled
	}
	return o.DriftDetection
}
