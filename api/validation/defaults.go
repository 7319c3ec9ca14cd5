package validation

import (
	"waybill.dev/waybill/api/v1alpha1"
)

// DefaultApplicationInstallation fills in what the user left out. old is nil
// on create, def nil where the definition is not known.
//
// The version and the target namespace are settled when the installation is created: later
// they come from old, so that a client that never names them (server-side apply drops what its
// manager no longer sends) changes neither, or from what the controller resolved meanwhile.
// Deploy options follow the definition. It is idempotent.
func DefaultApplicationInstallation(obj, old *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) {
	defaultVersion(obj, old, def)
	defaultNamespace(obj, old, def)
	defaultDeployOptions(obj, old, def)
}

func defaultVersion(obj, old *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) {
	ref := &obj.Spec.ApplicationRef
	if ref.Version == "" && old != nil {
		ref.Version = old.GetVersion(nil)
	}
	if ref.Version == "" && def != nil {
		ref.Version = def.Spec.DefaultVersion
	}
}

func defaultNamespace(obj, old *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) {
	if obj.Spec.Namespace != nil {
		return
	}
	switch {
	case old != nil && old.Spec.Namespace != nil:
		obj.Spec.Namespace = old.Spec.Namespace.DeepCopy()
	case old != nil && old.Status.Application != nil:
		obj.Spec.Namespace = &v1alpha1.TargetNamespace{Name: old.Status.Application.Namespace}
	case def != nil && def.Spec.DefaultNamespace != nil:
		obj.Spec.Namespace = def.Spec.DefaultNamespace.DeepCopy()
	case def != nil && obj.Namespace != "":
		obj.Spec.Namespace = &v1alpha1.TargetNamespace{Name: obj.Namespace}
	}
}

func defaultDeployOptions(obj, old *v1alpha1.ApplicationInstallation, def *v1alpha1.ApplicationDefinition) {
	if obj.Spec.DeployOptions != nil {
		return
	}
	switch {
	case def != nil:
		obj.Spec.DeployOptions = def.Spec.DefaultDeployOptions.DeepCopy()
	case old != nil:
		obj.Spec.DeployOptions = old.Spec.DeployOptions.DeepCopy()
	}
}
