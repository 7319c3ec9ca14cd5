package kustomize

import (
	"bytes"
	"encoding/json"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

const (
	// maxProperties bounds how many properties kustomize looks at in the files of crds of a build, each
	// as often as references lead to it, with the text of the paths to them.
	maxProperties = 1_000_000
	// maxReferences bounds how many references lead from one to the next.
	maxReferences = 100
)

// definition is a type in a file of crds, as kustomize reads it.
type definition struct{ Schema spec.Schema }

// definitions follows the references in a file of crds as kustomize does, which looks neither for
// circles, that would end the process, nor for how many there are. It counts the fields that kustomize
// then looks for in all objects; of several files with the same content, kustomize keeps them once.
func (w *work) definitions(file string, content []byte) error {
	if w.isCounted(content) {
		return nil
	}
	decode := func(content []byte, to any) error { return yaml.Unmarshal(content, to) }
	if bytes.HasPrefix(content, []byte("{")) {
		decode = json.Unmarshal
	}
	walk := crdWalk{left: maxProperties - w.properties}
	if err := decode(content, &walk.types); err != nil {
		return failed(file, "the file does not hold definitions of types: %s", tidy(err))
	}
	for name, t := range walk.types {
		if isObject(t) && !walk.follow(name, 0, 0) {
			return failed(file, "the references lead in circles, or to too many definitions; write out what they lead to")
		}
	}
	w.properties = maxProperties - walk.left
	w.fields += walk.fields
	w.written += walk.fields
	return nil
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
