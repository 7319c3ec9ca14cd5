package dashboard

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/values/schema"
)

// editor is what is known of the values of a chart, beside the field that they are edited in.
type editor struct {
	Fields []editorField
	// More says that the chart knows more than is listed.
	More bool
}

// editorField is a value that a chart knows.
type editorField struct {
	Name, Types, Default, Description, Choices string
	Required, Secret, Deprecated               bool
	// Snippet sets it, in YAML.
	Snippet string
}

// editorOf returns what a schema says of values; without fields if there is none.
func editorOf(s *schema.Schema) editor {
	if s == nil {
		return editor{}
	}
	fields, more := s.Fields()
	e := editor{More: more}
	for _, f := range fields {
		e.Fields = append(e.Fields, editorField{
			Name: f.Name(), Types: strings.Join(f.Types, " or "), Default: f.Default, Description: f.Description, Choices: strings.Join(f.Choices, ", "),
			Required: f.Required, Secret: f.Secret, Deprecated: f.Deprecated, Snippet: snippet(f),
		})
	}
	return e
}

// snippet returns the lines of YAML that set a value.
func snippet(f schema.Field) string {
	var b strings.Builder
	for i, name := range f.Path {
		b.WriteString(strings.Repeat("  ", i) + yamlKey(name) + ":")
		if i < len(f.Path)-1 {
			b.WriteString("\n")
		}
	}
	switch {
	case f.Default != "":
		b.WriteString(" " + f.Default) // JSON is YAML
	case len(f.Choices) > 0:
		b.WriteString(" " + f.Choices[0])
	default:
		b.WriteString(" ")
	}
	return b.String() + "\n"
}

// yamlKey quotes a name that YAML would read as something else.
func yamlKey(name string) string {
	plain := name != "" && strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	}) < 0
	first := byte(0)
	if plain {
		first = name[0]
	}
	if plain && (first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z') {
		switch strings.ToLower(name) {
		case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		default:
			return name
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
}

// versionChoice is a version to choose.
type versionChoice struct {
	Version             string
	Default, Deprecated bool
}

func versionChoices(d *v1alpha1.ApplicationDefinition) []versionChoice {
	if d == nil {
		return nil
	}
	var choices []versionChoice
	for _, v := range d.Spec.Versions {
		choices = append(choices, versionChoice{Version: v.Version, Default: v1alpha1.SameVersion(v.Version, d.Spec.DefaultVersion), Deprecated: v.Deprecated})
	}
	return choices
}

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }
