package applicationinstallation

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// application returns the one Application that describes an installation. It only observes,
// because Helm deletes what Helm created. Its components are the objects of the installation
// in the target namespace; objects elsewhere are in the inventory only.
func application(p plan, inventory []manifest.ID) (manifest.Object, error) {
	app := &v1alpha1.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind},
		ObjectMeta: metav1.ObjectMeta{Name: p.inst.Name, Namespace: p.resolved.Namespace},
		Spec: v1alpha1.ApplicationSpec{
			Type:       p.resolved.Name,
			Version:    p.resolved.Version,
			Ownership:  v1alpha1.OwnershipObserve,
			Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.ReleaseLabel: p.inst.Name}},
			Components: components(p.resolved.Namespace, inventory),
		},
	}
	if p.definition != nil {
		app.Spec.Description = p.definition.Spec.Description
		app.Spec.AboutURL = p.definition.Spec.DocumentationURL
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	if err != nil {
		return manifest.Object{}, err
	}
	delete(content, "status")
	return manifest.Object{Unstructured: &unstructured.Unstructured{Object: content}}, nil
}

// maxComponents is the limit of the API.
const maxComponents = 1000

func components(namespace string, inventory []manifest.ID) []v1alpha1.ApplicationComponent {
	var list []v1alpha1.ApplicationComponent
	for _, id := range inventory {
		if id.Namespace != namespace || isApplication(id) {
			continue
		}
		list = append(list, v1alpha1.ApplicationComponent{Group: id.Group, Version: id.Version, Kind: id.Kind, Name: id.Name})
	}
	slices.SortFunc(list, func(a, b v1alpha1.ApplicationComponent) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), maxComponents)]
}
