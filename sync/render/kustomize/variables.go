package kustomize

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxName is how long the names of variables are that are told apart, and maxNames how many.
	maxName, maxNames = 64, 10_000
)

// variables are the vars of a build, and where their values are written to.
type variables struct {
	// vars are the objects that they read, by their names. Kustomize accepts none twice.
	vars map[string]subject
	// named is how many places look as if a var belonged there, by its name: "" if that is any.
	named map[string]int
}

// within counts the places in the texts of a value.
func (v *variables) within(n *yaml.Node) {
	n = target(n)
	v.read(n.Value)
	for _, child := range n.Content {
		v.within(child)
	}
}

// read counts the places in a text.
func (v *variables) read(text string) {
	for {
		_, after, found := strings.Cut(text, "$(")
		if !found {
			return
		}
		text = after
		name, _, ended := strings.Cut(after[:min(len(after), maxName+1)], ")")
		if _, known := v.named[name]; !ended || !known && len(v.named) >= maxNames {
			name = ""
		}
		v.named[strings.Clone(name)]++
	}
}

// placesOf returns how many places a var may be written to.
func (v *variables) placesOf(name string) int {
	if name == "" {
		return v.named[""]
	}
	return v.named[name] + v.named[""]
}
