package schema

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// object checks an object. In one of which a part is unknown, a property that is null may be removed,
// or not, and what is missing may be there.
func (e *evaluation) object(s *jsonschema.Schema, i instance, object map[string]any) verdict {
	if !e.spend(len(object) / 4) {
		return unknown
	}
	result := valid
	names := slices.Sorted(maps.Keys(object))
	if i.partial {
		result = unknown
		names = slices.DeleteFunc(names, func(name string) bool { return object[name] == nil })
	}
	if s.MaxProperties != nil && len(names) > *s.MaxProperties {
		result = e.fault(i, "must have at most "+count(*s.MaxProperties, "property"))
	}
	if !i.partial {
		result = result.worse(e.complete(s, i, object))
	}
	for _, name := range names {
		if !e.spend(1) {
			return result.worse(unknown)
		}
		result = result.worse(e.property(s, i, name, object[name]))
		if s.PropertyNames != nil {
			result = result.worse(e.name(s.PropertyNames, i, name))
		}
		result = result.worse(e.dependent(s, i, name))
	}
	return result
}

// complete checks what only an object can be checked for of which everything is known.
func (e *evaluation) complete(s *jsonschema.Schema, i instance, object map[string]any) verdict {
	result := valid
	if s.MinProperties != nil && len(object) < *s.MinProperties {
		result = e.fault(i, "must have at least "+count(*s.MinProperties, "property"))
	}
	for _, name := range s.Required {
		if !e.spend(1) {
			return result.worse(unknown)
		}
		if _, ok := object[name]; !ok {
			result = e.fault(i, "must have the property "+quoted(name))
		}
	}
	return result
}

// property checks the value of a property, and whether there may be one of that name.
func (e *evaluation) property(s *jsonschema.Schema, i instance, name string, value any) verdict {
	result, evaluated, doubtful := valid, false, false
	at := i.below(name, value)
	if known, ok := s.Properties[name]; ok {
		evaluated = true
		result = result.worse(e.check(known, at))
	}
	for expression, schema := range s.PatternProperties {
		switch e.matches(expression, name) {
		case valid:
			evaluated = true
			result = result.worse(e.check(schema, at))
		case unknown:
			doubtful = true
		case invalid:
		}
	}
	switch additional := s.AdditionalProperties.(type) {
	case bool:
		switch {
		case evaluated || additional:
		case doubtful:
			result = result.worse(unknown)
		case !e.spend(len(s.Properties)):
			result = e.fault(at, "is not a value of the chart")
		default:
			result = e.fault(at, describeUnknown(s.Properties, name))
		}
	case *jsonschema.Schema:
		switch {
		case evaluated:
		case doubtful:
			result = result.worse(unknown)
		default:
			result = result.worse(e.check(additional, at))
		}
	}
	if doubtful {
		result = result.worse(unknown)
	}
	return result
}

// name checks the name of a property.
func (e *evaluation) name(s *jsonschema.Schema, i instance, name string) verdict {
	verdict := e.check(s, instance{value: name})
	if verdict == invalid {
		e.fault(i.below(name, nil), "is not an allowed name of a property")
	}
	return verdict
}

// dependent checks what the presence of a property demands.
func (e *evaluation) dependent(s *jsonschema.Schema, i instance, name string) verdict {
	result := valid
	if demanded, ok := s.DependentSchemas[name]; ok {
		result = result.worse(e.check(demanded, i))
	}
	if demanded, ok := s.Dependencies[name].(*jsonschema.Schema); ok {
		result = result.worse(e.check(demanded, i))
	}
	_, old := s.Dependencies[name].([]string)
	if _, ok := s.DependentRequired[name]; ok || old {
		result = result.worse(unknown)
	}
	return result
}

// matches reports whether an expression matches a text.
func (e *evaluation) matches(expression jsonschema.Regexp, text string) verdict {
	p, ok := expression.(*pattern)
	if !ok || p.compiled == nil {
		return unknown
	}
	if !e.spend(p.cost(text)) {
		return unknown
	}
	if p.compiled.MatchString(text) {
		return valid
	}
	return invalid
}

func (e *evaluation) text(s *jsonschema.Schema, i instance, text string) verdict {
	result := valid
	if s.MinLength != nil || s.MaxLength != nil {
		if !e.spend(1 + len(text)/1000) {
			return unknown
		}
		length := utf8.RuneCountInString(text)
		if s.MinLength != nil && length < *s.MinLength {
			result = e.fault(i, "must have at least "+count(*s.MinLength, "character"))
		}
		if s.MaxLength != nil && length > *s.MaxLength {
			result = e.fault(i, "must have at most "+count(*s.MaxLength, "character"))
		}
	}
	if s.Pattern == nil {
		return result
	}
	matched := e.matches(s.Pattern, text)
	if matched == invalid {
		e.fault(i, "must match the pattern "+excerptOf(s.Pattern.String()))
	}
	return result.worse(matched)
}

func (e *evaluation) number(s *jsonschema.Schema, i instance, number json.Number) verdict {
	n := rational(number)
	if n == nil {
		return unknown
	}
	result := valid
	for _, bound := range []struct {
		by    *big.Rat
		holds func(order int) bool
		text  string
	}{
		{s.Minimum, func(order int) bool { return order >= 0 }, "must be at least "},
		{s.Maximum, func(order int) bool { return order <= 0 }, "must be at most "},
		{s.ExclusiveMinimum, func(order int) bool { return order > 0 }, "must be more than "},
		{s.ExclusiveMaximum, func(order int) bool { return order < 0 }, "must be less than "},
	} {
		if bound.by != nil && !bound.holds(n.Cmp(bound.by)) {
			result = e.fault(i, bound.text+written(bound.by))
		}
	}
	if s.MultipleOf != nil && s.MultipleOf.Sign() != 0 && !new(big.Rat).Quo(n, s.MultipleOf).IsInt() {
		result = e.fault(i, "must be a multiple of "+written(s.MultipleOf))
	}
	return result
}

// combined checks the schemas that a schema combines.
func (e *evaluation) combined(s *jsonschema.Schema, i instance) verdict {
	result := valid
	for _, all := range s.AllOf {
		result = result.worse(e.check(all, i))
	}
	if s.Not != nil {
		not := e.check(s.Not, i.quiet()).opposite()
		if not == invalid {
			e.fault(i, "is not allowed")
		}
		result = result.worse(not)
	}
	if len(s.AnyOf) > 0 {
		result = result.worse(e.alternatives(s.AnyOf, i, false))
	}
	if len(s.OneOf) > 0 {
		result = result.worse(e.alternatives(s.OneOf, i, true))
	}
	if s.If == nil {
		return result
	}
	switch e.check(s.If, i.quiet()) {
	case valid:
		return result.worse(e.optional(s.Then, i))
	case invalid:
		return result.worse(e.optional(s.Else, i))
	case unknown:
	}
	return result.worse(unknown)
}

// optional checks a schema, if there is one.
func (e *evaluation) optional(s *jsonschema.Schema, i instance) verdict {
	if s == nil {
		return valid
	}
	return e.check(s, i)
}

// alternatives checks schemas of which one, or exactly one, has to accept a value.
func (e *evaluation) alternatives(of []*jsonschema.Schema, i instance, one bool) verdict {
	counts := map[verdict]int{}
	var faults []Fault
	for _, s := range of {
		tried := &evaluation{steps: e.steps, nesting: e.nesting}
		at := i
		at.report = true
		counts[tried.check(s, at)]++
		faults = append(faults, tried.faults[:min(len(tried.faults), 1)]...)
		e.steps = tried.steps
	}
	switch {
	case counts[invalid] == len(of):
		return e.fault(i, describeAlternatives(i.path, faults))
	case one && counts[valid] > 1:
		return e.fault(i, "must match exactly one of the alternatives that the schema lists")
	case counts[valid] > 0 && (!one || counts[unknown] == 0):
		return valid
	}
	return unknown
}
