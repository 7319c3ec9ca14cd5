package diff

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// provided is what a cluster may lack when an object is tried out, and has by the time that it is
// applied.
type provided struct {
	// kinds are those that CustomResourceDefinitions define.
	kinds map[schema.GroupKind]bool

	// namespaces by name.
	namespaces map[string]bool
}

// with returns what is provided together with objects.
func (p provided) with(objects []manifest.Object) provided {
	all := provided{kinds: map[schema.GroupKind]bool{}, namespaces: map[string]bool{}}
	maps.Copy(all.kinds, p.kinds)
	maps.Copy(all.namespaces, p.namespaces)
	for _, object := range objects {
		switch object.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
			all.kinds[schema.GroupKind{Group: group, Kind: kind}] = true
		case schema.GroupKind{Kind: "Namespace"}:
			all.namespaces[object.GetName()] = true
		}
	}
	return all
}

// removeMaintained removes the status, and the metadata that the API server maintains.
func removeMaintained(object *unstructured.Unstructured) {
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	delete(object.Object, "status")
}

// prepare copies a manifest as it is applied: without the fields that the API server maintains, and
// with a Secret's stringData moved to data. The error says what is wrong with a Secret: the API
// server, which would find it too, quotes what it refuses.
func prepare(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	removeMaintained(object)
	if object.GetKind() != "Secret" || object.GroupVersionKind().Group != "" {
		return object, nil
	}
	return object, apply.PrepareSecret(object.Object)
}
