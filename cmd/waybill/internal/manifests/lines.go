package manifests

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/sync/manifest"
)

// place is where a document begins.
type place struct {
	file string
	line int
}

// document is a document with the lines of its fields.
type document struct {
	root  *yaml.Node
	first int // line of the file that line 1 of root is
}

// Line returns the line of the file that a field of an object stands in; that of the
// nearest field above it that is there where it is missing, and the object's own where the
// file cannot be read any more. The field is written as validation errors have it:
// spec.versions[1].values[a.b].
func (s *Set) Line(object manifest.Object, field string) int {
	if object.File == "" || object.Line == 0 {
		return object.Line
	}
	at := place{object.File, object.Line}
	doc, ok := s.lines[at]
	if !ok {
		doc = s.parse(at)
		s.lines[at] = doc
	}
	if doc == nil {
		return object.Line
	}
	return doc.first + lineOf(doc.root, steps(field)) - 1
}

// parse reads the document that begins at a place; nil where it cannot.
func (s *Set) parse(at place) *document {
	content := s.stdin
	if at.file != Stdin {
		var err error
		if content, err = os.ReadFile(at.file); err != nil {
			return nil
		}
	}
	for range at.line - 1 {
		_, rest, found := bytes.Cut(content, []byte("\n"))
		if !found {
			return nil
		}
		content = rest
	}
	root := &yaml.Node{}
	if err := yaml.NewDecoder(bytes.NewReader(content)).Decode(root); err != nil || root.Kind != yaml.DocumentNode {
		return nil
	}
	return &document{root: root.Content[0], first: at.line}
}

// lineOf follows the steps into a node as far as they lead.
func lineOf(node *yaml.Node, steps []string) int {
	line := node.Line
	for _, step := range steps {
		for node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		key, value := child(node, step)
		if value == nil {
			return line
		}
		line, node = key.Line, value
	}
	return line
}

// child returns the node that says where a child is, and the child.
func child(node *yaml.Node, step string) (key, value *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	}
	return nil, nil
}

// steps splits a path at its dots and brackets; what is in brackets stays whole.
func steps(path string) []string {
	var all []string
	for path != "" {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			step, rest, _ := strings.Cut(path[1:], "]")
			all, path = append(all, step), rest
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			all, path = append(all, path[:end]), path[end:]
		}
	}
	return all
}
