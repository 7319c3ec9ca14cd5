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
	first int // line of the file that corresponds to line 1 of root
}

// Line returns the line of the file in which a field of an object is. If the field is missing, it
// is the line of the nearest existing parent field, and if the file cannot be read any more, that
// of the object itself. The field is written as in validation errors: spec.versions[1].values[a.b].
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

// parse parses the document that begins at a place; nil if that fails.
func (s *Set) parse(at place) *document {
	content := s.stdin
	if at.file != standardInput {
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

// lineOf follows the steps into a node as far as they lead, and returns the line.
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

// child returns the node that has the position of a child, and the child.
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

// steps splits a path at its dots and brackets; text in brackets stays whole.
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
