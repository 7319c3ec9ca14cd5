package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func compiledOf(t *testing.T, b Bundle) *Schema {
	t.Helper()
	encoded, err := b.Encode()
	require.NoError(t, err)
	s, err := Compile(encoded)
	require.NoError(t, err)
	return s
}

// Users see which values a chart knows, and what is secret of them.
func TestFields(t *testing.T) {
	s := compiledOf(t, Bundle{
		Schema: json.RawMessage(`{
			"type": "object", "required": ["replicas"],
			"$defs": {"image": {"type": "object", "properties": {"tag": {"type": ["string", "null"], "title": "Tag"}}}},
			"properties": {
				"replicas": {"type": "integer", "default": 2, "description": "How many Pods run."},
				"size": {"enum": ["small", "large"]},
				"image": {"$ref": "#/$defs/image"},
				"admin": {"type": "object", "properties": {
					"password": {"type": "string", "format": "password", "default": "hunter2"},
					"token": {"type": "string", "writeOnly": true}
				}},
				"shape": {"const": {"format": "password"}}
			}}`),
		Subcharts: []Subchart{{Name: "db", Bundle: Bundle{Schema: json.RawMessage(`{"properties": {"rootPassword": {"format": "password"}}}`)}}},
	})
	fields, more := s.Fields()
	assert.False(t, more)
	by := map[string]Field{}
	var names []string
	for _, f := range fields {
		by[f.Name()] = f
		names = append(names, f.Name())
	}
	assert.Equal(t, []string{"admin.password", "admin.token", "db.rootPassword", "image.tag", "replicas", "shape", "size"}, names)
	assert.Equal(t, Field{Path: []string{"replicas"}, Types: []string{"integer"}, Description: "How many Pods run.", Default: "2", Required: true}, by["replicas"])
	assert.Equal(t, []string{`"small"`, `"large"`}, by["size"].Choices)
	assert.ElementsMatch(t, []string{"string", "null"}, by["image.tag"].Types)
	assert.Equal(t, "Tag", by["image.tag"].Description)
	assert.Empty(t, by["admin.password"].Default, "a secret default is not shown")

	for path, secret := range map[string]bool{
		"admin.password": true, "admin.token": true, "db.rootPassword": true, "admin": false, "replicas": false, "db.other": false, "shape": false,
	} {
		assert.Equal(t, secret, markAt(s, path).Secret(), path)
	}
	faults, err := s.Check(map[string]any{"shape": map[string]any{"format": "password"}})
	require.NoError(t, err)
	assert.Empty(t, faults, "what marks secrets changes no value")
}

// A schema that refers to itself in many ways takes no time.
func TestFields_areBounded(t *testing.T) {
	one := `{"allOf": [` + strings.TrimSuffix(strings.Repeat(`{"$ref": "#/$defs/a"},`, 20), ",") + `]}`
	s := compiledOf(t, Bundle{Schema: json.RawMessage(`{"$defs": {"a": {"properties": {"x": ` + one + `, "y": ` + one + `}}}, "$ref": "#/$defs/a"}`)})
	_, more := s.Fields()
	assert.True(t, more)
}
