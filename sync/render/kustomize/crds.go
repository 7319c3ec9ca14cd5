package kustomize

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
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

// checkReferences checks that the references in a file of crds come to an end: kustomize follows
// them without looking, and a circle would end the process.
func checkReferences(file string, content []byte) error {
	const advice = "write out what they lead to"
	d := definitions{refersTo: make(map[string][]string), reads: make(map[string]int)}
	found := false
	for document := range documents(content) {
		for i := 0; i+1 < len(document.Content); i += 2 {
			found = true
			to := references(document.Content[i+1], "")
			for _, name := range to {
				if !plainReference.MatchString(name) || strings.Contains(name, "//") {
					return failed(file, "a reference is not the name of a definition; %s", advice)
				}
			}
			name := document.Content[i].Value
			d.refersTo[name] = append(d.refersTo[name], to...)
		}
	}
	if !found && strings.Contains(string(content), "ref") {
		return failed(file, "the file is not valid YAML")
	}
	for name := range d.refersTo {
		if d.count(name) > maxReferences {
			return failed(file, "the references lead in circles, or to too many definitions; %s", advice)
		}
	}
	return nil
}

var plainReference = regexp.MustCompile(`^[A-Za-z0-9._/#~-]*$`)

// references lists what a definition refers to, at any depth.
func references(n *yaml.Node, key string) []string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && strings.EqualFold(key, "$ref") {
		return []string{n.Value}
	}
	var found []string
	for i, child := range n.Content {
		key := ""
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			key = n.Content[i-1].Value
		}
		found = append(found, references(child, key)...)
	}
	return found
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
