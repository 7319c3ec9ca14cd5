package schema_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/render/values/schema"
)

// dice makes schemas and values of few names, so that they meet.
type dice struct{ *rand.Rand }

func (d dice) name() string { return []string{"a", "b", "c"}[d.IntN(3)] }

func (d dice) value(depth int) any {
	switch n := d.IntN(9); {
	case n < 2 && depth > 0:
		return d.object(depth - 1)
	case n == 2 && depth > 0:
		list := []any{}
		for range d.IntN(3) {
			list = append(list, d.value(depth-1))
		}
		return list
	case n == 3:
		return nil
	case n == 4:
		return d.IntN(2) == 0
	case n < 7:
		return d.IntN(4)
	}
	return []string{"", "x", "xy"}[d.IntN(3)]
}

func (d dice) object(depth int) map[string]any {
	made := map[string]any{}
	for range d.IntN(4) {
		made[d.name()] = d.value(depth)
	}
	return made
}

func (d dice) schemas(depth int) []any {
	made := []any{}
	for range 1 + d.IntN(3) {
		made = append(made, d.schema(depth))
	}
	return made
}

func (d dice) schema(depth int) any {
	if d.IntN(12) == 0 {
		return d.IntN(3) > 0
	}
	made := map[string]any{}
	for range 1 + d.IntN(3) {
		d.keyword(made, depth)
	}
	return made
}

// keyword adds a keyword to a schema.
func (d dice) keyword(to map[string]any, depth int) {
	simple := []func(){
		func() {
			to["type"] = []string{"object", "string", "integer", "array", "boolean", "null", "number"}[d.IntN(7)]
		},
		func() { to["enum"] = []any{d.value(1), d.value(1)} },
		func() { to["const"] = d.value(1) },
		func() { to["minimum"] = d.IntN(4) },
		func() { to["exclusiveMaximum"] = d.IntN(4) },
		func() { to["minLength"] = d.IntN(3) },
		func() { to["pattern"] = "^x" },
		func() { to["required"] = []string{d.name()} },
		func() { to["minProperties"] = d.IntN(3) },
		func() { to["maxProperties"] = d.IntN(3) },
		func() { to["minItems"] = d.IntN(3) },
		func() { to["uniqueItems"] = true },
		func() { to["dependentRequired"] = map[string]any{d.name(): []string{d.name()}} },
		func() { to["$ref"] = "#/$defs/" + d.name() },
	}
	nested := []func(){
		func() {
			to["properties"] = map[string]any{d.name(): d.schema(depth - 1), d.name(): d.schema(depth - 1)}
		},
		func() { to["patternProperties"] = map[string]any{"[ab]": d.schema(depth - 1)} },
		func() { to["additionalProperties"] = d.schema(depth - 1) },
		func() { to["propertyNames"] = d.schema(depth - 1) },
		func() { to["items"] = d.schema(depth - 1) },
		func() { to["prefixItems"] = d.schemas(depth - 1) },
		func() { to["contains"] = d.schema(depth - 1) },
		func() { to["allOf"] = d.schemas(depth - 1) },
		func() { to["anyOf"] = d.schemas(depth - 1) },
		func() { to["oneOf"] = d.schemas(depth - 1) },
		func() { to["not"] = d.schema(depth - 1) },
		func() { to["if"], to["then"], to["else"] = d.schema(depth-1), d.schema(depth-1), d.schema(depth-1) },
		func() { to["dependentSchemas"] = map[string]any{d.name(): d.schema(depth - 1)} },
		func() { to["unevaluatedProperties"] = d.schema(depth - 1) },
	}
	if depth == 0 {
		simple[d.IntN(len(simple))]()
		return
	}
	both := append(simple, nested...)
	both[d.IntN(len(both))]()
}

// over merges values over others as Helm does: null may remove what it meets, or stay.
func (d dice) over(values, others map[string]any) map[string]any {
	merged := maps.Clone(others)
	for name, value := range values {
		above, isMap := value.(map[string]any)
		below, both := merged[name].(map[string]any)
		switch {
		case isMap && both:
			merged[name] = d.over(above, below)
		case value == nil && d.IntN(2) == 0:
			delete(merged, name)
		default:
			merged[name] = value
		}
	}
	return merged
}

// K48: what is refused, the library that Helm uses refuses too, with any values of other layers.
func TestCheck_refusesOnlyWhatHelmRefuses(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(1, 2))}
	refused := 0
	for range 3_000 {
		root := map[string]any{"properties": map[string]any{"a": d.schema(2), "b": d.schema(2)}, "additionalProperties": d.schema(1)}
		d.keyword(root, 2)
		root["$defs"] = map[string]any{"a": d.schema(1), "b": d.schema(1), "c": d.schema(0)}
		text, err := json.Marshal(root)
		require.NoError(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		compiler := jsonschema.NewCompiler()
		require.NoError(t, compiler.AddResource("file:///values.schema.json", doc))
		helms, err := compiler.Compile("file:///values.schema.json")
		if err != nil {
			continue
		}
		values := d.object(2)
		found, err := compileBundle(t, schema.Bundle{Schema: text}).Check(values)
		require.NoError(t, err)
		if len(found) == 0 {
			continue
		}
		refused++
		for range 5 {
			whole, err := json.Marshal(d.over(values, d.object(2)))
			require.NoError(t, err)
			plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(whole))
			require.NoError(t, err)
			assert.Error(t, helms.Validate(plain), "schema %s\nvalues %v\nwith other layers %s\nfaults %v", text, values, whole, found)
		}
		if t.Failed() {
			return
		}
	}
	assert.Greater(t, refused, 400, "of what is drawn, enough is wrong")
}
