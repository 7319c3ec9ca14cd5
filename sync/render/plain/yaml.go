package plain

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/internal/yamlvalue"
)

// yamlDocuments decodes a YAML stream. The stream is split first, so that a
// syntax error in one document leaves the others alone.
func yamlDocuments(content []byte, l Limits) iter.Seq[document] {
	return func(yield func(document) bool) {
		for part := range split(content) {
			if !part.documents(l, yield) {
				return
			}
		}
	}
}

// part is a piece of a stream: one document in all but odd cases.
type part struct {
	content []byte
	// skipped is the number of lines in the file before it.
	skipped int
}

// split cuts a stream before each line that begins a document and after each that ends one.
// Comments and directives stay with the document that follows them.
func split(content []byte) iter.Seq[part] {
	return func(yield func(part) bool) {
		start, skipped, line, filled := 0, 0, 0, false
		for at := 0; at < len(content); {
			end := len(content)
			if i := bytes.IndexByte(content[at:], '\n'); i >= 0 {
				end = at + i + 1
			}
			text := content[at:end]
			line++
			cut, next := end, line
			if isMarker(text, "---") {
				cut, next = at, line-1
			}
			if filled && (cut == at || isMarker(text, "...")) {
				if !yield(part{content[start:cut], skipped}) {
					return
				}
				start, skipped, filled = cut, next, false
			}
			filled = filled || isContentLine(text)
			at = end
		}
		if filled {
			yield(part{content[start:], skipped})
		}
	}
}

// isMarker reports whether a line begins or ends a document. Within a document no line can look
// like that, not even in a block scalar.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\n' || rest[0] == '\r')
}

// isContentLine reports whether a line has more than a comment, a directive, or the bare marker of
// a document.
func isContentLine(line []byte) bool {
	if isMarker(line, "---") || isMarker(line, "...") {
		line = line[len("---"):]
	}
	text := bytes.TrimSpace(line)
	return len(text) > 0 && text[0] != '#' && line[0] != '%'
}

// documents decodes a part; false means to stop.
func (p part) documents(l Limits, yield func(document) bool) bool {
	if expansion.Nodes(p.content) > l.Nodes {
		return yield(document{flaw: tooManyNodes(p.skipped+1, l)})
	}
	decoder := yaml.NewDecoder(bytes.NewReader(p.content))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return yield(document{flaw: p.syntaxError(err)})
		}
		if !yield(p.document(&root, l)) {
			return false
		}
	}
}

func tooManyNodes(line int, l Limits) *yamlvalue.Flaw {
	return yamlvalue.Exceeded(line, "the document has too many values (limit Nodes is %d)", l.Nodes)
}

func (p part) document(root *yaml.Node, l Limits) document {
	content := root.Content[0]
	d := document{line: p.skipped + content.Line}
	value, err := yamlvalue.FromNode(content, p.skipped, yamlvalue.Limits{Depth: l.Depth, AliasNodes: l.AliasNodes, AliasBytes: l.AliasBytes})
	if err != nil {
		if !errors.As(err, &d.flaw) {
			d.flaw = yamlvalue.Invalid(d.line, "%s", err)
		}
		d.id = identify(content)
		return d
	}
	d.value, d.itemLines = value, p.itemLines(content)
	return d
}

// identify returns which object a document is about that cannot be decoded.
func identify(object *yaml.Node) manifest.ID {
	metadata := field(object, "metadata")
	gvk := schema.FromAPIVersionAndKind(text(field(object, "apiVersion")), text(field(object, "kind")))
	return manifest.ID{
		Group:     gvk.Group,
		Version:   gvk.Version,
		Kind:      gvk.Kind,
		Namespace: text(field(metadata, "namespace")),
		Name:      text(field(metadata, "name")),
	}
}

// field returns the value of a key; nil if there is none, or if it is ambiguous which of several is
// meant.
func field(object *yaml.Node, key string) *yaml.Node {
	if object == nil || object.Kind != yaml.MappingNode {
		return nil
	}
	var value *yaml.Node
	for i := 0; i+1 < len(object.Content); i += 2 {
		if name := object.Content[i]; name.Kind != yaml.ScalarNode || name.Value != key {
			continue
		}
		if value != nil {
			return nil
		}
		value = object.Content[i+1]
	}
	return value
}

// text returns a string, or "" for anything else.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// itemLines returns the lines where the items of a list begin.
func (p part) itemLines(object *yaml.Node) []int {
	items := field(object, "items")
	if items == nil || items.Kind != yaml.SequenceNode {
		return nil
	}
	lines := make([]int, len(items.Content))
	for i, item := range items.Content {
		lines[i] = p.skipped + item.Line
	}
	return lines
}

var syntaxError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// syntaxError extracts the line from an error of the parser.
func (p part) syntaxError(err error) *yamlvalue.Flaw {
	text := strings.Join(strings.Fields(err.Error()), " ")
	line := 1
	if m := syntaxError.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
		text = m[2]
	}
	return yamlvalue.Invalid(p.skipped+line, "not valid YAML: %s", text)
}
