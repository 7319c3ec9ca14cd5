package schema

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// markAt returns what is marked of the value at a path, with [] for an item.
func markAt(s *Schema, path string) *Mark {
	m := s.Marks(NewLooks())
	for name := range strings.SplitSeq(path, ".") {
		if name == "[]" {
			m = m.Item()
		} else {
			m = m.Below(name)
		}
	}
	return m
}

func TestMarks(t *testing.T) {
	for reason, tc := range map[string]struct {
		schema, path string
		secret       bool
	}{
		"a property":                          {`{"properties": {"a": {"writeOnly": true}}}`, "a", true},
		"another one":                         {`{"properties": {"a": {"writeOnly": true}}}`, "b", false},
		"what it is in is none":               {`{"properties": {"a": {"properties": {"b": {"writeOnly": true}}}}}`, "a", false},
		"what is in it is one":                {`{"properties": {"a": {"writeOnly": true}}}`, "a.b.c", true},
		"all values of a chart":               {`{"writeOnly": true}`, "a", true},
		"by a pattern":                        {`{"patternProperties": {"^p": {"writeOnly": true}}}`, "pw", true},
		"by a pattern that does not match":    {`{"patternProperties": {"^p": {"writeOnly": true}}}`, "a", false},
		"by a pattern that knows more":        {`{"properties": {"pw": {}}, "patternProperties": {"^p": {"writeOnly": true}}}`, "pw", true},
		"all that are not named":              {`{"properties": {"a": {}}, "additionalProperties": {"writeOnly": true}}`, "b", true},
		"and not those that are":              {`{"properties": {"a": {}}, "additionalProperties": {"writeOnly": true}}`, "a", false},
		"an item":                             {`{"properties": {"a": {"items": {"writeOnly": true}}}}`, "a.[]", true},
		"one of a tuple":                      {`{"properties": {"a": {"prefixItems": [{}, {"writeOnly": true}]}}}`, "a.[]", true},
		"one of an old tuple":                 {`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"items": [{"writeOnly": true}]}}}`, "a.[]", true},
		"what follows one":                    {`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"items": [{}], "additionalItems": {"writeOnly": true}}}}`, "a.[]", true},
		"a name is no item":                   {`{"properties": {"a": {"items": {"writeOnly": true}}}}`, "a.b", false},
		"in one of several":                   {`{"anyOf": [{}, {"properties": {"a": {"writeOnly": true}}}]}`, "a", true},
		"if it is of a kind":                  {`{"if": {}, "then": {"properties": {"a": {"writeOnly": true}}}}`, "a", true},
		"elsewhere":                           {`{"$defs": {"s": {"writeOnly": true}}, "properties": {"a": {"$ref": "#/$defs/s"}}}`, "a", true},
		"at a depth that no chart has":        {`{"items": {"$ref": "#"}, "properties": {"a": {"writeOnly": true}}}`, strings.Repeat("[].", 50) + "a", true},
		"a schema that is in itself":          {`{"properties": {"a": {"$ref": "#"}}, "allOf": [{"$ref": "#"}]}`, "a.a.a", false},
		"what a schema says nothing of":       {`{"properties": {"a": {"type": "object"}}}`, "a.b.c", false},
		"nothing is marked by a secret value": {`{"properties": {"a": {"const": {"format": "password"}}}}`, "a", false},
	} {
		t.Run(reason, func(t *testing.T) {
			assert.Equal(t, tc.secret, markAt(compiledOf(t, Bundle{Schema: json.RawMessage(tc.schema)}), tc.path).Secret())
		})
	}
}

// The work for a page is bounded, whatever the schema is and however many values there are: what was not checked is secret.
func TestMarks_areBounded(t *testing.T) {
	one := `{"allOf": [` + strings.TrimSuffix(strings.Repeat(`{"$ref": "#/$defs/a"},`, 20), ",") + `]}`
	s := compiledOf(t, Bundle{Schema: json.RawMessage(`{"$defs": {"a": {"properties": {"x": ` + one + `, "y": ` + one + `}, "additionalProperties": ` + one + `}}, "$ref": "#/$defs/a"}`)})
	looks := NewLooks()
	whole := s.Marks(looks)
	for range 10_000 {
		assert.False(t, whole.Below("x").Below("y").Secret(), "it is known")
	}
	assert.Less(t, maxMarkLooks-looks.left, 1000, "and looked at once")
	for i := 0; !looks.Spent(); i++ {
		whole.Below(strconv.Itoa(i))
	}
	assert.True(t, whole.Below("other").Secret())
	assert.True(t, whole.Below("other").Item().Secret())
	assert.False(t, whole.Below("x").Secret(), "what is known, still is")
}
