package schema

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// verdict is what a schema says of a value of which a part may be unknown.
type verdict int

const (
	// unknown: it depends on values that others may set, or on what is not evaluated here.
	unknown verdict = iota
	// valid, whatever others set.
	valid
	// invalid, whatever others set.
	invalid
)

// worse returns the verdict on a value that has to satisfy both.
func (v verdict) worse(other verdict) verdict {
	switch {
	case v == invalid || other == invalid:
		return invalid
	case v == unknown || other == unknown:
		return unknown
	}
	return valid
}

// opposite returns the verdict of a schema that accepts what another one does not.
func (v verdict) opposite() verdict {
	switch v {
	case valid:
		return invalid
	case invalid:
		return valid
	case unknown:
	}
	return unknown
}

// instance is a value and where it is.
type instance struct {
	value any
	path  []string
	// partial says that others may add to the objects in it. Lists are replaced as a whole, so that
	// nothing in them is unknown.
	partial bool
	// report says that faults are certain here, and are to be recorded.
	report bool
}

// below returns a value in an object.
func (i instance) below(name string, value any) instance {
	return instance{value: value, path: append(slices.Clip(i.path), name), partial: i.partial, report: i.report}
}

// quiet returns the instance for a question whose answer alone is no fault.
func (i instance) quiet() instance {
	i.report = false
	return i
}

// maxRecorded is how many faults are recorded, of which the first are reported.
const maxRecorded = 5 * maxFaults

// maxNesting bounds how deeply schemas refer to each other.
const maxNesting = 200

// numberSteps is what comparing two numbers exactly takes.
const numberSteps = 10

// evaluation checks the values of one installation.
type evaluation struct {
	steps, nesting int
	faults         []Fault
}

// fault records a fault, and returns that verdict.
func (e *evaluation) fault(i instance, message string) verdict {
	if i.report && len(e.faults) < maxRecorded {
		e.faults = append(e.faults, Fault{Path: slices.Clone(i.path), Message: message})
	}
	return invalid
}

// spend takes steps from the budget, and reports whether it lasts.
func (e *evaluation) spend(steps int) bool {
	e.steps -= steps
	return e.steps > 0
}

// check returns the verdict of a schema. Its order and its cases are those of the library, which knows
// neither parts nor budgets.
func (e *evaluation) check(s *jsonschema.Schema, i instance) verdict {
	if s.Bool != nil {
		if *s.Bool {
			return valid
		}
		return e.fault(i, "is not allowed")
	}
	if !e.spend(1) || e.nesting > maxNesting {
		return unknown
	}
	e.nesting++
	defer func() { e.nesting-- }()
	if s.Types != nil && !s.Types.IsEmpty() && !fits(s.Types.ToStrings(), i.value) {
		return e.fault(i, describeTypes(s.Types.ToStrings(), i.value))
	}
	result := e.choice(s, i)
	result = result.worse(e.format(s, i))
	if s.Ref != nil {
		result = result.worse(e.check(s.Ref, i))
		if s.DraftVersion < 2019 {
			return result
		}
	}
	switch v := i.value.(type) {
	case map[string]any:
		result = result.worse(e.object(s, i, v))
	case []any:
		result = result.worse(e.list(s, i, v))
	case string:
		result = result.worse(e.text(s, i, v))
	case json.Number:
		result = result.worse(e.number(s, i, v))
	}
	result = result.worse(e.combined(s, i))
	if s.RecursiveRef != nil || s.DynamicRef != nil || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil {
		result = result.worse(unknown)
	}
	return result
}

// fits reports whether a value is of one of the types.
func fits(types []string, value any) bool {
	is := typeOf(value)
	return slices.Contains(types, is) || is == "number" && slices.Contains(types, "integer") && isInteger(value)
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func isInteger(value any) bool {
	n := rational(value)
	return n != nil && n.IsInt()
}

// rational returns a number; nil if it is none.
func rational(value any) *big.Rat {
	n, ok := value.(json.Number)
	if !ok || !ordinary(n) {
		return nil
	}
	exact, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return nil
	}
	return exact
}

// choice checks const and enum.
func (e *evaluation) choice(s *jsonschema.Schema, i instance) verdict {
	var choices []any
	switch {
	case s.Const != nil && s.Enum != nil:
		return unknown // no schema has both in practice
	case s.Const != nil:
		choices = []any{*s.Const}
	case s.Enum != nil:
		choices = s.Enum.Values
	default:
		return valid
	}
	for _, choice := range choices {
		if !e.spend(1) {
			return unknown
		}
		if i.partial && typeOf(i.value) == "object" && typeOf(choice) == "object" {
			return unknown
		}
		if e.same(choice, i.value) {
			return valid
		}
	}
	if e.steps <= 0 {
		return unknown
	}
	return e.fault(i, describeChoices(choices))
}

// same reports whether two values are equal.
func (e *evaluation) same(a, b any) bool {
	if !e.spend(1) {
		return false
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name := range a {
			other, ok := b[name]
			if !ok || !e.same(a[name], other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, e.same)
	case json.Number:
		if a == b {
			return true
		}
		if !e.spend(numberSteps) {
			return false
		}
		x, y := rational(a), rational(b)
		return x != nil && y != nil && x.Cmp(y) == 0
	default:
		return typeOf(a) == typeOf(b) && a == b
	}
}

func (e *evaluation) format(s *jsonschema.Schema, i instance) verdict {
	text, ok := i.value.(string)
	switch {
	case s.Format == nil || !ok:
		return valid
	case len(text) > maxPatternBytes || !e.spend(1+len(text)/16) || s.Format.Name == "regex":
		return unknown
	case s.Format.Validate(text) != nil:
		return e.fault(i, "must be a valid "+excerptOf(s.Format.Name))
	}
	return valid
}

// list checks an array, of which everything is known.
func (e *evaluation) list(s *jsonschema.Schema, i instance, items []any) verdict {
	result := valid
	if s.MinItems != nil && len(items) < *s.MinItems {
		result = e.fault(i, "must have at least "+count(*s.MinItems, "item"))
	}
	if s.MaxItems != nil && len(items) > *s.MaxItems {
		result = e.fault(i, "must have at most "+count(*s.MaxItems, "item"))
	}
	if s.UniqueItems {
		result = result.worse(e.unique(i, items))
	}
	for n, item := range items {
		at := i.below("["+strconv.Itoa(n)+"]", item)
		at.partial = false
		result = result.worse(e.item(s, i, at, n))
	}
	if s.Contains != nil {
		result = result.worse(unknown)
	}
	return result
}

// unique looks for equal items.
func (e *evaluation) unique(i instance, items []any) verdict {
	for n := range items {
		if slices.ContainsFunc(items[:n], func(other any) bool { return e.same(items[n], other) }) {
			return e.fault(i, "must not have two equal items")
		}
		if e.steps <= 0 {
			return unknown
		}
	}
	return valid
}

// item checks the nth item of an array.
func (e *evaluation) item(s *jsonschema.Schema, list, item instance, n int) verdict {
	first, rest := s.PrefixItems, any(nil)
	if s.Items2020 != nil {
		rest = s.Items2020
	}
	if s.DraftVersion < 2020 {
		first, rest = nil, s.AdditionalItems
		switch items := s.Items.(type) {
		case *jsonschema.Schema:
			rest = items
		case []*jsonschema.Schema:
			first = items
		default:
			return valid
		}
	}
	if n < len(first) {
		return e.check(first[n], item)
	}
	switch rest := rest.(type) {
	case *jsonschema.Schema:
		return e.check(rest, item)
	case bool:
		if !rest {
			return e.fault(list, "must have at most "+count(len(first), "item"))
		}
	}
	return valid
}
