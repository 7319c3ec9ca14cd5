package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/sync/excerpt"
)

// Bounds of what is listed of the values that schemas know.
const (
	maxFields     = 500
	maxFieldDepth = 12
	maxFieldText  = 500
	maxListed     = 20
	// maxLooks bounds the work, as schemas can refer to themselves in many ways.
	maxLooks = 20_000
)

// Field is a value that the schemas of a chart know.
type Field struct {
	// Path of the value.
	Path []string
	// Types that it may have; empty for any.
	Types []string
	// Description is that of the schema, or its title.
	Description string
	// Default as JSON; empty if the schema names none, or if it is secret.
	Default string
	// Choices are the values that are allowed, as JSON, if the schema lists them.
	Choices []string
	// Required says that it must be set, by some layer of values.
	Required bool
	// Secret says that it is not to be shown: the schema says writeOnly, or format password.
	Secret bool
	// Deprecated says that the chart will no longer know it.
	Deprecated bool
}

// Name of the value, in the form of a path.
func (f Field) Name() string { return strings.Join(f.Path, ".") }

// Fields returns the values that the schemas of a chart and of its subcharts know, in the order of their names, and
// whether there are more. A value that holds others is listed only if nothing is known of those.
func (s *Schema) Fields() (fields []Field, more bool) {
	l := &listing{Looks: Looks{left: maxLooks}}
	l.charts(&s.root, nil)
	slices.SortStableFunc(l.fields, func(a, b Field) int { return slices.Compare(a.Path, b.Path) })
	l.fields = slices.CompactFunc(l.fields, func(a, b Field) bool { return slices.Equal(a.Path, b.Path) })
	return l.fields, l.more
}

// listing collects fields.
type listing struct {
	Looks
	fields []Field
	more   bool
}

func (l *listing) charts(c *compiled, path []string) {
	if c.schema != nil {
		l.properties(c.schema, path, 0)
	}
	for i := range c.subs {
		l.charts(&c.subs[i].compiled, append(slices.Clip(path), c.subs[i].Name))
	}
}

// properties lists what a schema knows below a path, and reports whether that is anything.
func (l *listing) properties(s *jsonschema.Schema, path []string, depth int) bool {
	if s == nil || depth > maxFieldDepth {
		return false
	}
	if !l.spend(1) {
		l.more = true
		return true
	}
	found := false
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		found = true
		known, at := s.Properties[name], append(slices.Clip(path), name)
		if l.properties(known, at, depth+1) {
			continue
		}
		if len(l.fields) >= maxFields {
			l.more = true
			return true
		}
		field := l.describe(known, at)
		field.Required = slices.Contains(s.Required, name)
		l.fields = append(l.fields, field)
	}
	for _, other := range slices.Concat(s.AllOf, []*jsonschema.Schema{s.Ref}) {
		found = l.properties(other, path, depth+1) || found
	}
	return found
}

func (l *listing) describe(s *jsonschema.Schema, path []string) Field {
	value := &Mark{looks: &l.Looks}
	value.read(s)
	field := Field{Path: path, Secret: value.Secret()}
	for at, depth := s, 0; at != nil && depth < maxFieldDepth; at, depth = at.Ref, depth+1 {
		if at.Types != nil && len(field.Types) == 0 {
			field.Types = at.Types.ToStrings()
		}
		if text := at.Description; field.Description == "" && text != "" {
			field.Description = excerpt.Of(text, maxFieldText)
		}
		if field.Description == "" && at.Title != "" {
			field.Description = excerpt.Of(at.Title, maxFieldText)
		}
		if at.Default != nil && field.Default == "" && !field.Secret {
			field.Default = jsonText(*at.Default)
		}
		if at.Enum != nil && field.Choices == nil && !field.Secret {
			for _, value := range at.Enum.Values[:min(len(at.Enum.Values), maxListed)] {
				field.Choices = append(field.Choices, jsonText(value))
			}
		}
		field.Deprecated = field.Deprecated || at.Deprecated
	}
	return field
}

func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return excerpt.Of(string(text), maxFieldText)
}

// markSecrets says writeOnly where a schema says format password: of the latter, nothing is kept when it is
// compiled.
func markSecrets(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if s["format"] == "password" {
			s["writeOnly"] = true
		}
		for key, below := range s {
			switch key {
			case "const", "enum", "default", "examples": // values, and not schemas
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
				named, _ := below.(map[string]any)
				for _, one := range named {
					markSecrets(one)
				}
			default:
				markSecrets(below)
			}
		}
	case []any:
		for _, below := range s {
			markSecrets(below)
		}
	}
}
