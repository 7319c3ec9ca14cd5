package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/render/values/schema"
)

// compile compiles the schema of a chart without subcharts.
func compile(t *testing.T, text string) *schema.Schema {
	t.Helper()
	return compileBundle(t, schema.Bundle{Schema: json.RawMessage(text)})
}

func compileBundle(t *testing.T, b schema.Bundle) *schema.Schema {
	t.Helper()
	encoded, err := b.Encode()
	require.NoError(t, err)
	compiled, err := schema.Compile(encoded)
	require.NoError(t, err)
	return compiled
}

// faults checks values and returns a line for each fault.
func faults(t *testing.T, s *schema.Schema, values string) []string {
	t.Helper()
	var parsed map[string]any
	require.NoError(t, json.Unmarshal([]byte(values), &parsed))
	found, err := s.Check(parsed)
	require.NoError(t, err)
	lines := []string{}
	for _, f := range found {
		lines = append(lines, strings.Join(f.Path, ".")+" "+f.Message)
	}
	return lines
}

const draft7 = `"$schema": "http://json-schema.org/draft-07/schema#", `

// K48, K49: what an installation sets wins over all other layers, so it is wrong for certain.
func TestCheck_refusesWhatNoOtherLayerCanMend(t *testing.T) {
	for name, c := range map[string]struct{ schema, values, want string }{
		"type":                  {`{"properties": {"replicas": {"type": "integer"}}}`, `{"replicas": "x"}`, "replicas must be integer, not string"},
		"fraction":              {`{"properties": {"replicas": {"type": "integer"}}}`, `{"replicas": 1.5}`, "replicas must be integer, not number"},
		"types":                 {`{"properties": {"port": {"type": ["integer", "string"]}}}`, `{"port": true}`, "port must be integer or string, not boolean"},
		"nested":                {`{"properties": {"image": {"properties": {"tag": {"type": "string"}}}}}`, `{"image": {"tag": 1}}`, "image.tag must be string, not number"},
		"object for a scalar":   {`{"properties": {"image": {"type": "string"}}}`, `{"image": {}}`, "image must be string, not object"},
		"enum":                  {`{"properties": {"type": {"enum": ["a", "b"]}}}`, `{"type": "c"}`, `type must be one of "a", "b"`},
		"const":                 {`{"properties": {"type": {"const": 1}}}`, `{"type": 2}`, `type must be 1`},
		"pattern":               {`{"properties": {"host": {"pattern": "^[a-z]+$"}}}`, `{"host": "A"}`, "host must match the pattern ^[a-z]+$"},
		"format":                {`{` + draft7 + `"properties": {"mail": {"format": "email"}}}`, `{"mail": "a"}`, "mail must be a valid email"},
		"minimum":               {`{"properties": {"n": {"minimum": 1}}}`, `{"n": 0}`, "n must be at least 1"},
		"maximum":               {`{"properties": {"n": {"maximum": 1.5}}}`, `{"n": 2}`, "n must be at most 1.5"},
		"exclusive":             {`{"properties": {"n": {"exclusiveMaximum": 2}}}`, `{"n": 2}`, "n must be less than 2"},
		"multiple":              {`{"properties": {"n": {"multipleOf": 2}}}`, `{"n": 3}`, "n must be a multiple of 2"},
		"length":                {`{"properties": {"s": {"minLength": 2}}}`, `{"s": "ä"}`, "s must have at least 2 characters"},
		"unknown value":         {`{"additionalProperties": false, "properties": {"replicaCount": {}}}`, `{"replica-count": 1}`, `replica-count is not a value of the chart: did you mean "replicaCount"?`},
		"pattern properties":    {`{"additionalProperties": false, "patternProperties": {"^x-": {"type": "string"}}}`, `{"x-a": 1, "y": 1}`, "x-a must be string, not number; y is not a value of the chart"},
		"additional schema":     {`{"additionalProperties": {"type": "string"}}`, `{"a": 1}`, "a must be string, not number"},
		"names":                 {`{"propertyNames": {"maxLength": 2}}`, `{"abc": 1}`, "abc is not an allowed name of a property"},
		"too many":              {`{"properties": {"m": {"maxProperties": 1}}}`, `{"m": {"a": 1, "b": 2}}`, "m must have at most 1 property"},
		"item":                  {`{"properties": {"l": {"items": {"type": "string"}}}}`, `{"l": ["a", 1]}`, "l.[1] must be string, not number"},
		"required in an item":   {`{"properties": {"l": {"items": {"required": ["name"]}}}}`, `{"l": [{}]}`, `l.[0] must have the property "name"`},
		"items":                 {`{"properties": {"l": {"maxItems": 1, "minItems": 1}}}`, `{"l": []}`, "l must have at least 1 item"},
		"unique":                {`{"properties": {"l": {"uniqueItems": true}}}`, `{"l": [{"a": 1}, {"a": 1.0}]}`, "l must not have two equal items"},
		"tuple":                 {`{` + draft7 + `"properties": {"l": {"items": [{}], "additionalItems": false}}}`, `{"l": [1, 2]}`, "l must have at most 1 item"},
		"reference":             {`{"$defs": {"port": {"maximum": 65535}}, "properties": {"port": {"$ref": "#/$defs/port"}}}`, `{"port": 70000}`, "port must be at most 65535"},
		"all":                   {`{"properties": {"n": {"allOf": [{"minimum": 1}, {"maximum": 0}]}}}`, `{"n": 0}`, "n must be at least 1"},
		"any":                   {`{"properties": {"n": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}`, `{"n": 0}`, "n must be string, not number, or must be null, not number"},
		"one of two":            {`{"properties": {"n": {"oneOf": [{"type": "number"}, {"type": "integer"}]}}}`, `{"n": 1}`, "n must match exactly one of the alternatives that the schema lists"},
		"not":                   {`{"properties": {"n": {"not": {"const": "latest"}}}}`, `{"n": "latest"}`, "n is not allowed"},
		"if a scalar":           {`{"properties": {"n": {"if": {"type": "string"}, "then": {"minLength": 1}}}}`, `{"n": ""}`, "n must have at least 1 character"},
		"dependent schema":      {`{"dependentSchemas": {"a": {"properties": {"b": {"type": "string"}}}}}`, `{"a": 1, "b": 1}`, "b must be string, not number"},
		"false":                 {`{"properties": {"old": false}}`, `{"old": 1}`, "old is not allowed"},
		"several":               {`{"properties": {"b": {"type": "string"}, "a": {"type": "string"}}}`, `{"b": 1, "a": 1}`, "a must be string, not number; b must be string, not number"},
		"old drafts' reference": {`{"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"n": {"$ref": "#/definitions/n", "type": "string"}}, "definitions": {"n": {"minimum": 1, "exclusiveMinimum": true}}}`, `{"n": 1}`, "n must be more than 1"},
	} {
		assert.Equal(t, c.want, strings.Join(faults(t, compile(t, c.schema), c.values), "; "), name)
	}
}

// K48: whatever the chart, the definition or valuesFrom may still set, or what Helm makes of it, is left
// to the rendering.
func TestCheck_allowsWhatDependsOnOtherLayers(t *testing.T) {
	for name, c := range map[string]struct{ schema, values string }{
		"required":              {`{"required": ["host"]}`, `{}`},
		"required below":        {`{"properties": {"db": {"required": ["host"]}}}`, `{"db": {"port": 1}}`},
		"few":                   {`{"minProperties": 3}`, `{"a": 1}`},
		"null":                  {`{"additionalProperties": false, "properties": {"n": {"type": "string"}}}`, `{"n": null, "x": null}`},
		"any with a part":       {`{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}`, `{}`},
		"one with a part":       {`{"oneOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": 2}}}]}`, `{"b": 1}`},
		"not with a part":       {`{"not": {"required": ["a"]}}`, `{"b": 1}`},
		"not with it":           {`{"not": {"properties": {"a": {"const": 1}}, "required": ["a", "b"]}}`, `{"a": 1}`},
		"if with a part":        {`{"if": {"properties": {"mode": {"const": "ha"}}}, "then": {"properties": {"n": {"minimum": 3}}}}`, `{"n": 1}`},
		"enum of objects":       {`{"properties": {"m": {"enum": [{"a": 1, "b": 2}]}}}`, `{"m": {"a": 1}}`},
		"dependent required":    {`{"dependentRequired": {"a": ["b"]}}`, `{"a": 1}`},
		"unevaluated":           {`{"unevaluatedProperties": false}`, `{"a": 1}`},
		"elsewhere":             {`{"properties": {"a": {"$ref": "https://example.com/schema.json"}}}`, `{"a": 1}`},
		"itself":                {`{"$ref": "#"}`, `{"a": 1}`},
		"format of a new draft": {`{"properties": {"mail": {"format": "email"}}}`, `{"mail": "a"}`},
		"a number as text":      {`{"properties": {"n": {"minimum": 3}}}`, `{"n": "1"}`},
		"no values":             {`{"type": "object"}`, `{}`},
		"no schema":             {`{"type": 5}`, `{"a": 1}`},
	} {
		assert.Empty(t, faults(t, compile(t, c.schema), c.values), name)
	}
}

// A value may be secret: no message repeats it.
func TestCheck_neverShowsValues(t *testing.T) {
	s := compile(t, `{"properties": {"a": {"enum": ["x"]}, "b": {"pattern": "^x$"}, "c": {"type": "integer"}, "d": {"const": "x"},
		"e": {"maxLength": 2}, "f": {"anyOf": [{"const": "x"}, {"pattern": "^x$"}]}, "g": {"not": {"type": "string"}}, "h": {"items": {"const": 1}}}}`)
	const secret = "hunter2"
	found := faults(t, s, `{"a": "`+secret+`", "b": "`+secret+`", "c": "`+secret+`", "d": "`+secret+`",
		"e": "`+secret+`", "f": "`+secret+`", "g": "`+secret+`", "h": ["`+secret+`"]}`)
	assert.Len(t, found, 8)
	assert.NotContains(t, strings.Join(found, "\n"), secret)
}

// K54: the values of a subchart are checked against its own schema where it is certain that it is used,
// under its alias, and without what globals may override.
func TestCheck_subcharts(t *testing.T) {
	strict := schema.Bundle{Schema: json.RawMessage(`{"properties": {"port": {"type": "integer"}, "global": {"properties": {"x": {"type": "integer"}}}}}`)}
	s := compileBundle(t, schema.Bundle{
		Schema: json.RawMessage(`{"properties": {"db": {"properties": {"host": {"type": "string"}}}}}`),
		Subcharts: []schema.Subchart{
			{Name: "db", Bundle: schema.Bundle{Subcharts: []schema.Subchart{{Name: "metrics", Bundle: strict}}, Schema: strict.Schema}},
			{Name: "cache", Optional: true, Condition: "cache.enabled", Bundle: strict},
			{Name: "queue", Optional: true, Bundle: strict},
			{Name: "free"},
		},
	})
	for values, want := range map[string]string{
		`{"db": {"port": "x", "host": 1}}`:                "db.host must be string, not number; db.port must be integer, not string",
		`{"db": {"metrics": {"port": "x"}}}`:              "db.metrics.port must be integer, not string",
		`{"db": "x"}`:                                     "db must be an object: it holds the values of a subchart",
		`{"db": null}`:                                    "",
		`{"db": {"global": {"x": "s"}}}`:                  "",
		`{"cache": {"port": "x"}}`:                        "",
		`{"cache": {"port": "x", "enabled": false}}`:      "",
		`{"cache": {"port": "x", "enabled": true}}`:       "cache.port must be integer, not string",
		`{"queue": {"port": "x"}, "tags": {"all": true}}`: "",
		`{"free": {"port": "x"}}`:                         "",
	} {
		assert.Equal(t, want, strings.Join(faults(t, s, values), "; "), values)
	}
}
