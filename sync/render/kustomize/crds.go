package kustomize

import (
	"bytes"
	"encoding/json"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// maxReferences bounds how many definitions of a file of crds are read, each as often as it is
// referred to.
const maxReferences = 10_000

// definitions are the types in a file of crds, with the types that each refers to.
type definitions struct {
	refersTo map[string][]string
	// reads are how many definitions are read for each; -1 for those being counted.
	reads map[string]int
}

// definition is a type in a file of crds, as kustomize reads it.
type definition struct{ Schema spec.Schema }

// checkReferences checks that the references in a file of crds come to an end: kustomize follows
// those of properties, from each type of objects, without looking, and a circle would end the
// process.
func checkReferences(file string, content []byte) error {
	var types map[string]definition
	decode := func(content []byte, to any) error { return yaml.Unmarshal(content, to) }
	if bytes.HasPrefix(content, []byte("{")) {
		decode = json.Unmarshal
	}
	if err := decode(content, &types); err != nil {
		return failed(file, "the file does not hold definitions of types: %s", tidy(err))
	}
	d := definitions{refersTo: make(map[string][]string), reads: make(map[string]int)}
	for name, t := range types {
		for _, property := range t.Schema.Properties {
			if property.Ref.GetURL() != nil {
				d.refersTo[name] = append(d.refersTo[name], property.Ref.String())
			}
		}
	}
	for name, t := range types {
		if isObject(t) && d.count(name) > maxReferences {
			return failed(file, "the references lead in circles, or to too many definitions; write out what they lead to")
		}
	}
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

// count returns how many definitions are read for one.
func (d *definitions) count(name string) int {
	switch reads := d.reads[name]; {
	case reads < 0:
		return maxReferences + 1
	case reads > 0:
		return reads
	}
	d.reads[name] = -1
	reads := 1
	for _, next := range d.refersTo[name] {
		reads = min(reads+d.count(next), maxReferences+1)
	}
	d.reads[name] = reads
	return reads
}
