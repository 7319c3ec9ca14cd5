package yamlvalue

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/sync/manifest"
)

// Limits bound what a document may expand to.
type Limits struct {
	// Depth is the number of maps and lists around a value.
	Depth int
	// AliasNodes and AliasBytes are how many values, and bytes of text, the aliases of one document
	// may stand for.
	AliasNodes, AliasBytes int
}

// Flaw is a fault in a document.
type Flaw struct {
	// Line is where it is, 1-based.
	Line int
	// Reason is one of the reasons of manifest.Problem.
	Reason string
	// Message is for a user, without a trailing period.
	Message string
}

// Error returns the message.
func (f *Flaw) Error() string { return f.Message }

// Invalid returns a Flaw for something that is not a manifest.
func Invalid(line int, format string, args ...any) *Flaw {
	return &Flaw{Line: line, Reason: manifest.ReasonInvalidManifest, Message: fmt.Sprintf(format, args...)}
}

// Exceeded returns a Flaw for a limit that was exceeded.
func Exceeded(line int, format string, args ...any) *Flaw {
	return &Flaw{Line: line, Reason: manifest.ReasonLimitExceeded, Message: fmt.Sprintf(format, args...)}
}

// FromNode returns the value of a node and everything below it. skipped is the number of lines in
// the file before the document. The error is a *Flaw.
func FromNode(n *yaml.Node, skipped int, l Limits) (any, error) {
	var tooLarge *expansion.TooLargeError
	err := expansion.Node(n, expansion.Limits{AliasNodes: l.AliasNodes, AliasBytes: l.AliasBytes})
	if errors.As(err, &tooLarge) {
		return nil, Exceeded(skipped+tooLarge.Line, "%s", tooLarge)
	}
	c := &converter{depth: l.Depth, skipped: skipped}
	return c.value(n, 0)
}

// converter is the state of one FromNode call.
type converter struct {
	depth   int
	skipped int
}

func (c *converter) value(n *yaml.Node, depth int) (any, error) {
	if depth > c.depth {
		return nil, Exceeded(c.line(n), "values are nested too deep (limit Depth is %d)", c.depth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.mapping(n, depth)
	case yaml.SequenceNode:
		return c.sequence(n, depth)
	case yaml.ScalarNode:
		return c.scalar(n)
	case yaml.AliasNode:
		return c.value(n.Alias, depth+1)
	}
	return nil, Invalid(c.line(n), "not valid YAML: unexpected content")
}

func (c *converter) line(n *yaml.Node) int {
	return c.skipped + n.Line
}

func (c *converter) sequence(n *yaml.Node, depth int) (any, error) {
	if tag := n.ShortTag(); tag != "!!seq" {
		return nil, Invalid(c.line(n), "tag %s is not supported", tag)
	}
	out := make([]any, len(n.Content))
	for i, item := range n.Content {
		value, err := c.value(item, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = value
	}
	return out, nil
}

func (c *converter) mapping(n *yaml.Node, depth int) (any, error) {
	if tag := n.ShortTag(); tag != "!!map" {
		return nil, Invalid(c.line(n), "tag %s is not supported", tag)
	}
	out := make(map[string]any, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			merges = append(merges, n.Content[i+1])
			continue
		}
		key, err := c.key(n.Content[i])
		if err != nil {
			return nil, err
		}
		if _, twice := out[key]; twice {
			return nil, Invalid(c.line(n.Content[i]), "key %q occurs twice in one object", key)
		}
		if out[key], err = c.value(n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	for _, m := range merges {
		if err := c.merge(out, m, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge adds the entries of one or several other mappings that are not there yet (<<).
func (c *converter) merge(into map[string]any, n *yaml.Node, depth int) error {
	from := n
	if from.Kind == yaml.AliasNode {
		from = from.Alias
	}
	sources := []*yaml.Node{n}
	if from.Kind == yaml.SequenceNode {
		sources = from.Content
	}
	for _, source := range sources {
		value, err := c.value(source, depth+1)
		if err != nil {
			return err
		}
		entries, ok := value.(map[string]any)
		if !ok {
			return Invalid(c.line(source), "<< takes an object, or a list of objects")
		}
		for key, value := range entries {
			if _, ok := into[key]; !ok {
				into[key] = value
			}
		}
	}
	return nil
}

// key returns a key of a mapping as in JSON: a string.
func (c *converter) key(n *yaml.Node) (string, error) {
	line := c.line(n)
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", Invalid(line, "a key must be a string")
	}
	value, err := c.scalar(n)
	if err != nil {
		return "", err
	}
	switch value := value.(type) {
	case string:
		return value, nil
	case bool:
		return strconv.FormatBool(value), nil
	case int64:
		return strconv.FormatInt(value, 10), nil
	case float64:
		if text, err := json.Marshal(value); err == nil {
			return string(text), nil
		}
	}
	return "", Invalid(line, "a key must be a string")
}

func (c *converter) scalar(n *yaml.Node) (any, error) {
	switch tag := n.ShortTag(); tag {
	case "!!str":
		// The parser knows only YAML 1.2, in which yes and on are strings.
		if n.Style == 0 {
			if b, ok := oldBool(n.Value); ok {
				return b, nil
			}
		}
		return n.Value, nil
	case "!!timestamp", "!!merge":
		return n.Value, nil
	case "!!null":
		return nil, nil
	case "!!bool":
		b, ok := oldBool(n.Value)
		if !ok {
			return nil, Invalid(c.line(n), "%q is not a boolean", n.Value)
		}
		return b, nil
	case "!!int":
		return c.integer(n)
	case "!!float":
		return c.float(n)
	default:
		return nil, Invalid(c.line(n), "tag %s is not supported", tag)
	}
}

// oldBool parses the booleans of YAML 1.1, which Kubernetes accepts.
func oldBool(s string) (value, ok bool) {
	switch s {
	case "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y":
		return true, true
	case "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N":
		return false, true
	}
	return false, false
}

// integer parses numbers with a base prefix, and those with a leading zero as octal, which is how
// file modes are written.
func (c *converter) integer(n *yaml.Node) (any, error) {
	text := strings.ReplaceAll(n.Value, "_", "")
	if i, err := strconv.ParseInt(text, 0, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(text, 0, 64); err == nil {
		return float64(u), nil
	}
	return c.float(n)
}

// float parses a number. JSON does not distinguish 1 and 1.0, so a whole number becomes an integer
// if it fits.
func (c *converter) float(n *yaml.Node) (any, error) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, Invalid(c.line(n), "%q is not a number that JSON knows", n.Value)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	return f, nil
}
