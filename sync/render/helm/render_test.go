package helm_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/helm"
)

func load(t *testing.T, dir string) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(dir)
	require.NoError(t, err)
	return c
}

// template is a chart of one template.
func template(text string) *chart.Chart {
	return &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: "one", Version: "1.0.0"},
		Templates: []*chart.File{{Name: "templates/one.yaml", Data: []byte(text)}},
	}
}

var stamp = helm.Stamp{
	Labels:      map[string]string{"apps.waybill.dev/owner-hash": "abc", "apps.waybill.dev/release": "shop"},
	Annotations: map[string]string{"apps.waybill.dev/owner": "hub/ApplicationInstallation/default/shop"},
}

// golden compares everything that was rendered with a file; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, file string, result *helm.Result) {
	t.Helper()
	var out strings.Builder
	section := func(title string, objects []manifest.Object) {
		for _, o := range objects {
			text, err := yaml.Marshal(o.Object)
			require.NoError(t, err)
			out.WriteString("---\n# " + title + " " + o.File + "\n" + string(text))
		}
	}
	section("crd", result.CRDs)
	section("object", result.Objects)
	section("hook", result.Hooks)
	out.WriteString("---\n# notes\n# " + result.Notes)
	path := "testdata/golden/" + file
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), out.String())
}

// K7, K48, C26, C33, C53
func TestRender_golden(t *testing.T) {
	cases := map[string]struct {
		reason  string
		options helm.Options
	}{
		"defaults": {
			reason:  "a chart with its own values: a list, a hook, a CRD, a subchart; marks on objects alone",
			options: helm.Options{ReleaseName: "shop", Namespace: "default", KubeVersion: "v1.30.1", Stamp: stamp},
		},
		"values": {
			reason: "values over those of the chart, null deletes, in a subchart too, and templates in values are text",
			options: helm.Options{
				ReleaseName: "shop", Namespace: "default", Revision: 3, KubeVersion: "v1.30.1", APIVersions: []string{"example.com/v1"},
				Values: values{
					"replicas":  2,
					"greeting":  "{{ .release.name }}",
					"resources": values{"limits": values{"cpu": nil}},
					"store":     values{"user": nil, "size": "2Gi"},
				},
			},
		},
		"disabled": {
			reason:  "a dependency that a condition switches off",
			options: helm.Options{ReleaseName: "shop", Namespace: "default", KubeVersion: "v1.30.1", Values: values{"store": values{"enabled": false}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := load(t, "testdata/shop")
			before := helm.Clone(c)
			result, err := helm.Render(t.Context(), c, tc.options)
			require.NoError(t, err, tc.reason)
			golden(t, name+".yaml", result)
			assert.Equal(t, before, helm.Clone(c), "a shared chart is not changed")
		})
	}
}

// K47: values of the wrong type
func TestRender_saysWhichValuesDoNotFit(t *testing.T) {
	cases := map[string]struct {
		values values
		want   string
	}{
		"Type":     {values{"replicas": "two"}, "replicas: got string, want integer"},
		"Bound":    {values{"replicas": -1}, "replicas: minimum: got -1, want 0"},
		"Enum":     {values{"mode": "s3cret"}, "mode: value must be one of 'small', 'large'"},
		"Pattern":  {values{"greeting": "S3CRET"}, "greeting: must match the pattern ^[a-z{} .]+$"},
		"Subchart": {values{"store": values{"size": 1}}, "store.size: got number, want string"},
		"Several":  {values{"replicas": "two", "mode": 1}, "; "},
		"NoMap":    {values{"store": "s3cret"}, "store must be an object"},
		"Null":     {values{"store": nil}, "store must be an object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := helm.Render(t.Context(), load(t, "testdata/shop"), helm.Options{ReleaseName: "shop", Namespace: "default", Values: tc.values})
			require.ErrorIs(t, err, helm.ErrInvalidValues)
			assert.Contains(t, err.Error(), tc.want)
			assert.NotContains(t, strings.ToLower(err.Error()), "s3cret")
		})
	}
}

func TestRender_fetchesNoSchemas(t *testing.T) {
	result, err := helm.Render(t.Context(), load(t, "testdata/shop"),
		helm.Options{ReleaseName: "shop", Namespace: "default", Values: values{"extra": values{"any": "thing"}}})
	require.NoError(t, err)
	assert.Equal(t, []string{"values are not checked against https://example.com/extra.schema.json: schemas are not fetched"}, result.Warnings)
}

// K47: charts that do not render, and charts that render too much
func TestRender_namesWhatIsWrongWithAChart(t *testing.T) {
	old := template("a: b")
	old.Metadata.KubeVersion = "<1.10.0"
	badSchema := template("a: b")
	badSchema.Schema = []byte(`{"type": 1}`)
	noJSON := template("a: b")
	noJSON.Schema = []byte(`{`)
	const bomb = `{{ printf "a: &x %s\nb: [%s]" (repeat 100000 "y") (repeat 10000 "*x,") }}`
	badCRD := template("")
	badCRD.Files = []*chart.File{{Name: "crds/x.yaml", Data: []byte("a: &x " + strings.Repeat("y", 100_000) + "\nb: [" + strings.Repeat("*x,", 10_000) + "]")}}
	cases := map[string]struct {
		chart *chart.Chart
		want  string
	}{
		"Bomb":        {template(bomb), "one/templates/one.yaml: aliases stand for too many bytes (limit AliasBytes is 5242880)"},
		"BombInCRD":   {badCRD, "limit AliasBytes is 5242880"},
		"Syntax":      {template("{{ .Values.x "), "parse error at (one/templates/one.yaml:1)"},
		"Fail":        {template(`{{ fail "needs a name" }}`), "needs a name"},
		"Required":    {template(`{{ required "name is required" .Values.name }}`), "name is required"},
		"NoYAML":      {template("a: b: c"), "one/templates/one.yaml"},
		"NoKind":      {template("metadata: {name: x}"), "one/templates/one.yaml"},
		"Recursion":   {template(`{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}`), "nested reference name"},
		"Huge":        {template(`a: {{ repeat 11000000 "x" }}`), "the limit is 10485760"},
		"Values":      {template("a: [{{ repeat 400000 `{},` }}]"), "one/templates/one.yaml: manifests hold too many values, and the limit is 300000"},
		"KubeVersion": {old, "requires Kubernetes <1.10.0"},
		"BadSchema":   {badSchema, "values.schema.json of chart one"},
		"NoJSON":      {noJSON, "parse values.schema.json of chart one"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := helm.Render(t.Context(), tc.chart, helm.Options{ReleaseName: "one", Namespace: "default"})
			require.ErrorIs(t, err, helm.ErrRender)
			assert.Contains(t, err.Error(), tc.want)
		})
	}
}

// What makes many values of a few bytes is checked before it is parsed, CRDs too; a long text is none of it.
func TestValidate_boundsCRDs(t *testing.T) {
	c := template("")
	c.Files = []*chart.File{{Name: "crds/x.yaml", Data: []byte("a: [" + strings.Repeat("{},", 400_000) + "]")}}
	_, err := helm.Validate(c, nil)
	require.ErrorIs(t, err, helm.ErrRender)
	require.ErrorContains(t, err, "one/crds/x.yaml: manifests hold too many values")
	c.Files[0].Data = []byte("a: |\n  [" + strings.Repeat("{},", 400_000) + "]")
	_, err = helm.Validate(c, nil)
	require.NoError(t, err)
}

// Helm applies no CRDs of a subchart that a condition or a tag disables.
func TestValidate_leavesOutCRDsOfDisabledSubcharts(t *testing.T) {
	c := template("")
	crd := func(name string) []*chart.File {
		return []*chart.File{{Name: "crds/" + name + ".yaml", Data: []byte("kind: " + name)}}
	}
	c.Files = crd("own")
	for _, dep := range []*chart.Dependency{
		{Name: "condition", Condition: "condition.enabled"},
		{Name: "tag", Tags: []string{"extras"}},
		{Name: "twice", Alias: "first"},
		{Name: "twice", Alias: "second"},
	} {
		dep.Version = "1.0.0"
		c.Metadata.Dependencies = append(c.Metadata.Dependencies, dep)
		if dep.Alias != "second" {
			c.AddDependency(&chart.Chart{
				Metadata: &chart.Metadata{APIVersion: "v2", Name: dep.Name, Version: "1.0.0"}, Files: crd(dep.Name),
			})
		}
	}
	cases := map[string]struct {
		reason string
		values map[string]any
		want   []string
	}{
		"Default":   {"nothing is disabled", nil, []string{"condition", "own", "tag", "twice"}},
		"Condition": {"a condition disables one", map[string]any{"condition": map[string]any{"enabled": false}}, []string{"own", "tag", "twice"}},
		"Tag":       {"a tag disables one", map[string]any{"tags": map[string]any{"extras": false}}, []string{"condition", "own", "twice"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			checked, err := helm.Validate(c, tc.values)
			require.NoError(t, err)
			var found []string
			for _, crd := range checked.CRDs {
				found = append(found, strings.TrimPrefix(string(crd.Data), "kind: "))
			}
			assert.ElementsMatch(t, tc.want, found, tc.reason)
			assert.Len(t, c.Dependencies(), 3, "the chart is not changed")
		})
	}
}

// A message is the same each time: it becomes a condition.
func TestValidate_messagesAreStable(t *testing.T) {
	const properties = `{"type": "object", "additionalProperties": false, "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}}}`
	cases := map[string]struct{ schema, want string }{
		"Values": {properties, "invalid values: a: got number, want string; b: got number, want string; c: got number, want string; " +
			"values: additional properties 'x', 'y', 'z' not allowed"},
		"Schema": {`{"type": 1, "minimum": "a", "required": "a", "properties": 1}`, "values.schema.json of chart one is not a valid JSON schema: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := template("")
			c.Schema = []byte(tc.schema)
			invalid := map[string]any{"a": 1, "b": 1, "c": 1, "x": 1, "y": 1, "z": 1}
			_, first := helm.Validate(c, invalid)
			require.ErrorContains(t, first, tc.want)
			for range 50 {
				_, err := helm.Validate(c, invalid)
				require.EqualError(t, err, first.Error())
			}
		})
	}
}

func TestRender_endsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	endless := template(`{{ range until 10000 }}{{ range until 300 }}{{ end }}{{ end }}`)
	_, err := helm.Render(ctx, endless, helm.Options{ReleaseName: "one", Namespace: "default"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// The rendering has a goroutine of its own, whose panic no caller could recover.
func TestRender_panicIsAnError(t *testing.T) {
	_, err := helm.Render(t.Context(), &chart.Chart{}, helm.Options{ReleaseName: "one", Namespace: "default"})
	require.ErrorIs(t, err, helm.ErrRender)
	assert.Contains(t, err.Error(), "failed unexpectedly")
}
