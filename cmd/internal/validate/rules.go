package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// check returns the findings of the webhook about an object: errors and warnings.
type check func(*unstructured.Unstructured, catalog) (field.ErrorList, []string, error)

// checks are the webhook's rules by kind.
var checks = map[string]check{
	v1alpha1.GitSyncKind: rules(func(o *v1alpha1.GitSync, _ catalog) (field.ErrorList, []string) {
		return validation.ValidateGitSync(o, nil), validation.GitSyncWarnings(o)
	}),
	v1alpha1.KubernetesClusterKind: rules(checkCluster),
	v1alpha1.ApplicationDefinitionKind: rules(func(o *v1alpha1.ApplicationDefinition, _ catalog) (field.ErrorList, []string) {
		return validation.ValidateApplicationDefinition(o, nil), validation.ApplicationDefinitionWarnings(o)
	}),
	v1alpha1.ApplicationInstallationKind: rules(checkInstallation),
	v1alpha1.ApplicationKind: rules(func(o *v1alpha1.Application, _ catalog) (field.ErrorList, []string) {
		return validation.ValidateApplication(o, nil), validation.ApplicationWarnings(o)
	}),
	v1alpha1.KubernetesApplicationKind: rules(func(o *v1alpha1.KubernetesApplication, _ catalog) (field.ErrorList, []string) {
		return validation.ValidateKubernetesApplication(o, nil), validation.KubernetesApplicationWarnings(o, nil)
	}),
	v1alpha1.KubernetesApplicationResourceKind: rules(func(o *v1alpha1.KubernetesApplicationResource, _ catalog) (field.ErrorList, []string) {
		return validation.ValidateKubernetesApplicationResource(o, nil), nil
	}),
	v1alpha1.HookActionKind:    rules(schemaAlone[v1alpha1.HookAction]),
	v1alpha1.ExecutionHookKind: rules(schemaAlone[v1alpha1.ExecutionHook]),

	v1alpha1.StatefulApplicationKind:        rules(errorsAlone(validation.ValidateStatefulApplication)),
	v1alpha1.StatefulApplicationClassKind:   rules(errorsAlone(validation.ValidateStatefulApplicationClass)),
	v1alpha1.ApplicationSnapshotKind:        rules(errorsAlone(validation.ValidateApplicationSnapshot)),
	v1alpha1.ApplicationSnapshotClassKind:   rules(errorsAlone(validation.ValidateApplicationSnapshotClass)),
	v1alpha1.ApplicationSnapshotContentKind: rules(errorsAlone(validation.ValidateApplicationSnapshotContent)),
	v1alpha1.ApplicationRollbackKind:        rules(errorsAlone(validation.ValidateApplicationRollback)),
}

// schemaAlone is for kinds of which the schema says it all.
func schemaAlone[T any](*T, catalog) (field.ErrorList, []string) { return nil, nil }

// errorsAlone is for kinds that nothing is warned of.
func errorsAlone[T any](validate func(*T) field.ErrorList) func(*T, catalog) (field.ErrorList, []string) {
	return func(o *T, _ catalog) (field.ErrorList, []string) { return validate(o), nil }
}

// rules turns rules for a type into a check.
func rules[T any](of func(*T, catalog) (field.ErrorList, []string)) check {
	return func(object *unstructured.Unstructured, known catalog) (field.ErrorList, []string, error) {
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return nil, nil, fmt.Errorf("decode %s: %w", object.GetKind(), err)
		}
		errs, warnings := of(typed, known)
		return errs, warnings, nil
	}
}

// checkInstallation looks up the definition among the files. If they do not hold it, nothing is
// said about it: it may be in the hub.
func checkInstallation(o *v1alpha1.ApplicationInstallation, known catalog) (field.ErrorList, []string) {
	definition := known.definitions[o.Spec.ApplicationRef.Name]
	validation.DefaultApplicationInstallation(o, nil, definition)
	errs, warnings := validation.ValidateApplicationInstallation(o, nil), validation.ApplicationInstallationWarnings(o, nil, definition)
	if definition == nil {
		return errs, warnings
	}
	errs = append(errs, validation.ValidateInstallationVersion(o, definition)...)
	errs = append(errs, validation.ValidateInstallationDeletionPolicy(o, nil, definition)...)
	invalid, unchecked := known.checkValues(o, definition)
	return append(errs, invalid...), append(warnings, unchecked...)
}
