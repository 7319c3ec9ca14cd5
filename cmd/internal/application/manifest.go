package application

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

// manifest returns an Application as people would write it: without a status, fields that the API
// server fills in, and empty fields.
func manifest(app *v1alpha1.Application) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	if err != nil {
		return nil, fmt.Errorf("write manifest of Application %s: %w", app.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind))
	delete(object.Object, "status")
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "finalizers"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	components, _, err := unstructured.NestedSlice(object.Object, "spec", "components")
	if err != nil || len(components) == 0 {
		return object, err
	}
	for i := range components {
		component, _ := components[i].(map[string]any)
		for _, key := range []string{"group", "name"} { // list keys, which defaults fill in
			if component[key] == "" {
				delete(component, key)
			}
		}
	}
	return object, unstructured.SetNestedSlice(object.Object, components, "spec", "components")
}

// Print writes the manifests of Applications: as a stream of YAML documents, or of JSON ones.
func Print(w io.Writer, asJSON bool, apps ...*v1alpha1.Application) error {
	for i, app := range apps {
		object, err := manifest(app)
		if err != nil {
			return err
		}
		var content []byte
		if asJSON {
			content, err = json.MarshalIndent(object.Object, "", "    ")
			content = append(content, '\n')
		} else {
			content, err = yaml.Marshal(object.Object)
		}
		if err != nil {
			return fmt.Errorf("write manifest of Application %s: %w", app.Name, err)
		}
		if i > 0 && !asJSON {
			content = append([]byte("---\n"), content...)
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return nil
}
