package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of all Waybill kinds.
const Group = "apps.waybill.dev"

// Category is the category of every kind, so that `kubectl get waybill -A` lists them all.
const Category = "waybill"

var (
	// GroupVersion is the group and version of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add this package to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds every kind of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&GitSync{}, &GitSyncList{},
		&KubernetesCluster{}, &KubernetesClusterList{},
		&ApplicationDefinition{}, &ApplicationDefinitionList{},
		&ApplicationInstallation{}, &ApplicationInstallationList{},
		&Application{}, &ApplicationList{},
		&KubernetesApplication{}, &KubernetesApplicationList{},
		&KubernetesApplicationResource{}, &KubernetesApplicationResourceList{},
		&StatefulApplication{}, &StatefulApplicationList{},
		&StatefulApplicationClass{}, &StatefulApplicationClassList{},
		&ApplicationSnapshot{}, &ApplicationSnapshotList{},
		&ApplicationSnapshotClass{}, &ApplicationSnapshotClassList{},
		&ApplicationSnapshotContent{}, &ApplicationSnapshotContentList{},
		&ApplicationRollback{}, &ApplicationRollbackList{},
		&HookAction{}, &HookActionList{},
		&ExecutionHook{}, &ExecutionHookList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
