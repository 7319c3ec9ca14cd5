package kustomize

import (
	"bytes"
	"encoding/json"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

const (
	// maxProperties bounds how many properties kustomize looks at in a file of crds, each as often as
	// references lead to it, with the text of the paths to them.
	maxProperties = 1_000_000
	// maxReferences bounds how many references lead from one to the next.
	maxReferences = 100
)

// definition is a type in a file of crds, as kustomize reads it.
type definition struct{ Schema spec.Schema }

// checkReferences follows the references in a file of crds as kustomize does, which looks neither for
// circles, that would end the process, nor for how many there are. It returns how many fields kustomize
// then looks for in all objects.
func checkReferences(file string, content []byte) (fields int, err error) {
	decode := func(content []byte, to any) error { return yaml.Unmarshal(content, to) }
	if bytes.HasPrefix(content, []byte("{")) {
		decode = json.Unmarshal
	}
	w := crdWalk{left: maxProperties}
	if err := decode(content, &w.types); err != nil {
		return 0, failed(file, "the file does not hold definitions of types: %s", tidy(err))
	}
	for name, t := range w.types {
		if isObject(t) && !w.follow(name, 0, 0) {
			return 0, failed(file, "the references lead in circles, or to too many definitions; write out what they lead to")
		}
	}
	return w.fields, nil
}

// isObject reports whether a type is one of objects.
func isObject(t definition) bool {
	for _, field := range []string{"apiVersion", "kind", "metadata"} {
		if _, ok := t.Schema.Properties[field]; !ok {
			return false
		}
	}
	return true
}

// crdWalk is the state of following references.
type crdWalk struct {
	types        map[string]definition
	left, fields int
}

// marks are the extensions by which a property becomes a field that kustomize looks for.
var marks = []string{"x-kubernetes-annotation", "x-kubernetes-label-selector", "x-kubernetes-identity", "x-kubernetes-object-ref-kind"}

// follow looks at the properties of a type, which is that many references away and has a path of that
// many bytes. It reports whether it came to an end.
func (w *crdWalk) follow(name string, references, path int) bool {
	for property, schema := range w.types[name].Schema.Properties {
		to := path + 1 + len(property)
		w.left--
		for _, mark := range marks {
			if _, marked := schema.Extensions.GetString(mark); marked {
				w.fields++
				w.left -= to / bytesPerChange
			}
		}
		if w.left < 0 || references > maxReferences {
			return false
		}
		if schema.Ref.GetURL() != nil && !w.follow(schema.Ref.String(), references+1, to) {
			return false
		}
	}
	return true
}
