package plain

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// converter makes the values that unstructured objects consist of (maps with
// string keys, slices, strings, int64, float64, bool and nil) from YAML, as
// kubectl and the API server understand it: YAML 1.1, by way of JSON. It goes
// directly, because the usual way, which encodes to JSON and decodes again,
// takes several times as long and loses the lines.
type converter struct {
	limits  Limits
	skipped int
	// aliased counts the values that aliases stand for; within says whether we
	// are in one.
	aliased int
	within  bool
}

func (c *converter) value(n *yaml.Node, depth int) (any, error) {
	if depth > c.limits.Depth {
		return nil, exceeded(c.line(n), "values are nested too deep (limit Depth is %d)", c.limits.Depth)
	}
	if c.within {
		if c.aliased++; c.aliased > c.limits.AliasNodes {
			return nil, exceeded(c.line(n), "aliases stand for too many values (limit AliasNodes is %d)", c.limits.AliasNodes)
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.mapping(n, depth)
	case yaml.SequenceNode:
		return c.sequence(n, depth)
	case yaml.ScalarNode:
		return c.scalar(n)
	case yaml.AliasNode:
		defer func(before bool) { c.within = before }(c.within)
		c.within = true
		return c.value(n.Alias, depth+1)
	}
	return nil, invalid(c.line(n), "not valid YAML: unexpected content")
}

func (c *converter) line(n *yaml.Node) int {
	return c.skipped + n.Line
}

func (c *converter) sequence(n *yaml.Node, depth int) (any, error) {
	if tag := n.ShortTag(); tag != "!!seq" {
		return nil, invalid(c.line(n), "tag %s is not supported", tag)
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
		return nil, invalid(c.line(n), "tag %s is not supported", tag)
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
			return nil, invalid(c.line(n.Content[i]), "key %q occurs twice in one object", key)
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

// merge adds the entries of another mapping, or of several, that are not there
// yet (<<).
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
			return invalid(c.line(source), "<< takes an object, or a list of objects")
		}
		for key, value := range entries {
			if _, ok := into[key]; !ok {
				into[key] = value
			}
		}
	}
	return nil
}

// key returns a key of a mapping as JSON has it: a string.
func (c *converter) key(n *yaml.Node) (string, error) {
	line := c.line(n)
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", invalid(line, "a key must be a string")
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
		text, err := json.Marshal(value)
		return string(text), err
	}
	return "", invalid(line, "a key must be a string")
}

func (c *converter) scalar(n *yaml.Node) (any, error) {
	switch tag := n.ShortTag(); tag {
	case "!!str":
		// The parser knows YAML 1.2 only, in which yes and on are strings.
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
			return nil, invalid(c.line(n), "%q is not a boolean", n.Value)
		}
		return b, nil
	case "!!int":
		return c.integer(n)
	case "!!float":
		return c.float(n)
	default:
		return nil, invalid(c.line(n), "tag %s is not supported", tag)
	}
}

// oldBool knows the booleans of YAML 1.1, which Kubernetes takes.
func oldBool(s string) (value, ok bool) {
	switch s {
	case "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y":
		return true, true
	case "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N":
		return false, true
	}
	return false, false
}

// integer reads numbers with a base prefix, and those with a leading zero as
// octal, which is how file modes are written.
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

// float reads a number. JSON does not know the difference between 1 and 1.0, so
// a whole number becomes an integer where it fits.
func (c *converter) float(n *yaml.Node) (any, error) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, invalid(c.line(n), "%q is not a number that JSON knows", n.Value)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	return f, nil
}
