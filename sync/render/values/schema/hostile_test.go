package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/render/values/schema"
)

// doubling returns a schema that takes 2^n steps.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$defs": {`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d": {"anyOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]}, `, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/d0"}}}`, n)
	return b.String()
}

// The author of a chart cannot keep admission busy.
func TestCheck_hostileSchemas(t *testing.T) {
	long := strings.Repeat("a", 100_000)
	for name, c := range map[string]struct{ schema, values string }{
		"doubling":      {doubling(60), `{"a": 1}`},
		"cycle":         {`{"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}]}}}`, `{"a": 1}`},
		"expression":    {`{"properties": {"a": {"pattern": "(a|aa|aaa){500}x"}}}`, `{"a": "` + long + `"}`},
		"many":          {`{"patternProperties": {` + many(`"(a|b){%d}x": {"type": "string"}`, 900) + `"z": {}}}`, `{"` + strings.Repeat("a", 1000) + `": 1}`},
		"many names":    {`{"additionalProperties": false, "properties": {` + many(`"p%d": {}`, 2000) + `"z": {}}}`, `{` + many(`"x%d": 1`, 50_000) + `"z": 1}`},
		"equal items":   {`{"properties": {"a": {"uniqueItems": true}}}`, `{"a": [` + many(`%d`, 50_000) + `0]}`},
		"large choices": {`{"properties": {"a": {"items": {"enum": [` + many(`"c%d"`, 20_000) + `1]}}}}`, `{"a": [` + many(`%d`, 20_000) + `2]}`},
	} {
		s := compile(t, c.schema)
		var values map[string]any
		require.NoError(t, json.Unmarshal([]byte(c.values), &values), name)
		start := time.Now()
		found, err := s.Check(values)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(found), 10, name)
		assert.Less(t, time.Since(start), 10*time.Second, name) // a fifth of a second, but for the race detector
	}
}

// many writes a list with n numbers.
func many(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+", ", i+2)
	}
	return b.String()
}

// What would take too much time or memory to compile is refused before.
func TestCompile_bounds(t *testing.T) {
	for name, text := range map[string]string{
		"size":     `{"description": "` + strings.Repeat("x", schema.MaxSize) + `"}`,
		"objects":  `{"properties": {` + many(`"p%d": {}`, 6000) + `"z": {}}}`,
		"depth":    strings.Repeat(`{"not": `, 200) + `true` + strings.Repeat(`}`, 200),
		"paths":    `{"properties": {"` + strings.Repeat("k", 10_000) + `": {"allOf": [` + many(`{"minimum": %d}`, 1000) + `true]}}}`,
		"exponent": `{"properties": {"a": {"maximum": 1e900000}}}`,
		"digits":   `{"properties": {"a": {"maximum": ` + strings.Repeat("9", 100) + `}}}`,
		"values":   `{"enum": [` + many(`%d`, 60_000) + `1]}`,
	} {
		encoded, err := json.Marshal(schema.Bundle{Schema: json.RawMessage(text)})
		require.NoError(t, err, name)
		_, err = schema.Compile(encoded)
		assert.ErrorIs(t, err, schema.ErrTooLarge, name)
	}
	_, err := (&schema.Bundle{Schema: json.RawMessage(`{"description": "` + strings.Repeat("x", schema.MaxSize) + `"}`)}).Encode()
	assert.ErrorIs(t, err, schema.ErrTooLarge)
}

func TestPack(t *testing.T) {
	encoded, err := (&schema.Bundle{Schema: json.RawMessage(`{ "type": "object" }`)}).Encode()
	require.NoError(t, err)
	packed, err := schema.Pack(encoded)
	require.NoError(t, err)
	got, err := schema.Unpack(packed, schema.Digest(encoded))
	require.NoError(t, err)
	assert.Equal(t, `{"schema":{"type":"object"}}`, string(got))
	_, err = schema.Unpack(packed, schema.Digest([]byte("{}")))
	assert.ErrorContains(t, err, "not the one with that digest")

	bomb, err := schema.Pack([]byte(strings.Repeat(" ", 64*schema.MaxSize)))
	require.NoError(t, err)
	_, err = schema.Unpack(bomb, "any")
	assert.ErrorIs(t, err, schema.ErrTooLarge)
}
