package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Fault is a value that no chart of these schemas accepts, whatever the other layers of values are.
type Fault struct {
	// Path of the value; empty for the values as a whole.
	Path []string

	// Message says what is wrong. It never repeats the value, which may be secret.
	Message string
}

// maxFaults is how many faults a check reports.
const maxFaults = 10

// maxSteps bounds the work of a check: schemas can be written to take forever. What is not reached is
// left to the rendering, which has bounds of its own.
const maxSteps = 100_000

// globals are the values that a chart shares with its subcharts.
const globals = "global"

// Check returns what is certainly wrong with the values of an installation, by path. They are those that
// win over all other layers.
func (s *Schema) Check(values map[string]any) ([]Fault, error) {
	plain, err := asJSON(values)
	if err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	e := &evaluation{steps: maxSteps}
	e.chart(&s.root, plain, nil)
	slices.SortStableFunc(e.faults, func(a, b Fault) int {
		return cmp.Or(slices.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	faults := slices.CompactFunc(e.faults, func(a, b Fault) bool {
		return slices.Equal(a.Path, b.Path) && a.Message == b.Message
	})
	return faults[:min(len(faults), maxFaults)], nil
}

// asJSON converts values to the types that a schema is for.
func asJSON(values map[string]any) (map[string]any, error) {
	data, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	converted, _ := plain.(map[string]any) // nil if there are none
	return converted, nil
}

// chart checks the values of a chart, and those of its subcharts below them.
func (e *evaluation) chart(c *compiled, values map[string]any, path []string) {
	known := withoutInherited(c, values)
	if c.schema != nil {
		e.check(c.schema, instance{value: known, path: path, partial: true, report: true})
	}
	for i := range c.subs {
		e.subchart(&c.subs[i], known, path)
	}
}

// withoutInherited leaves out the globals of subcharts: those of the chart above override them.
func withoutInherited(c *compiled, values map[string]any) map[string]any {
	known := values
	for i := range c.subs {
		name := c.subs[i].Name
		below, ok := known[name].(map[string]any)
		if _, shared := below[globals]; !ok || !shared {
			continue
		}
		below = maps.Clone(below)
		delete(below, globals)
		known = maps.Clone(known)
		known[name] = below
	}
	return known
}

// subchart checks the values of a subchart, if it is certain that it is used.
func (e *evaluation) subchart(sub *subchart, values map[string]any, path []string) {
	value, set := values[sub.Name]
	if !set || value == nil {
		return
	}
	path = append(slices.Clip(path), sub.Name)
	below, ok := value.(map[string]any)
	if !ok {
		e.faults = append(e.faults, Fault{Path: path, Message: "must be an object: it holds the values of a subchart"})
		return
	}
	if !sub.Optional || isTrue(values, sub.Condition) {
		e.chart(&sub.compiled, below, path)
	}
}

// isTrue reports whether the value at a path is true.
func isTrue(values map[string]any, path string) bool {
	if path == "" {
		return false
	}
	var value any = values
	for name := range strings.SplitSeq(path, ".") {
		below, ok := value.(map[string]any)
		if !ok {
			return false
		}
		value = below[name]
	}
	return value == true
}
