package helm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"waybill.dev/waybill/sync/render/helm"
)

// Of a flat chart, Helm makes what was rendered, whatever that looks like.
func TestRendered_flatIsWhatWasRendered(t *testing.T) {
	c := template("a: {{ \"{{ .Values.x }}\" }}\nb: {{ .Values.none }}\nc: |+\n  x\r\n\n\n")
	c.Templates = append(c.Templates,
		&chart.File{Name: `templates/"{{ fail "x" }}".yaml`, Data: []byte("d: 1")},
		&chart.File{Name: "templates/NOTES.txt", Data: []byte("{{`{{ fail \"y\" }}`}}")},
	)
	rendered, err := helm.Templates(c, helm.Options{ReleaseName: "one", Namespace: "default"}, nil)
	require.NoError(t, err)
	flat, values, err := rendered.Flat()
	require.NoError(t, err)
	all, err := chartutil.ToRenderValuesWithSchemaValidation(flat, values, chartutil.ReleaseOptions{}, chartutil.DefaultCapabilities, true)
	require.NoError(t, err)
	files, err := engine.Render(flat, all)
	require.NoError(t, err)
	assert.Equal(t, rendered.Files, files)
	assert.Len(t, files, 3)
}

// Helm takes <no value> out of what it renders, and would do so again of a flat chart: what was no alias
// when its size was looked at would become one. It also writes the names of templates into the manifest.
func TestTemplates_refusesWhatHelmWouldChange(t *testing.T) {
	o := helm.Options{ReleaseName: "one", Namespace: "default"}
	laughs := "a: <no <no value>value>&a [x, x, x, x]\nb: [<no <no value>value>*a, <no <no value>value>*a]\n"
	for reason, c := range map[string]*chart.Chart{
		"a template": template(laughs),
		"a value":    {Metadata: template("").Metadata, Templates: template("{{ .Values.x }}").Templates, Values: map[string]any{"x": laughs}},
	} {
		_, err := helm.Templates(c, o, nil)
		require.ErrorIs(t, err, helm.ErrRender, reason)
		assert.ErrorContains(t, err, "one/templates/one.yaml renders to a text with <no value> in it", reason)
	}
	for _, separator := range []string{"\n", "\r", "\u0085", "\u2028"} {
		c := template("kind: ConfigMap\n")
		c.Templates[0].Name = "templates/x" + separator + "a: &a [x]" + separator + "b: [*a, *a].yaml"
		_, err := helm.Templates(c, o, nil)
		require.ErrorIs(t, err, helm.ErrRender)
		assert.ErrorContains(t, err, "cannot be printed")
	}
}

// Values may be secret, and so are not in errors, also where a chart passes them to tpl.
func TestTemplates_doesNotQuoteValues(t *testing.T) {
	c := template(`a: {{ tpl .Values.x . }}`)
	for _, broken := range []string{"{{ if }}", `{{ fail "no" }}`, "{{ tpl `{{ if }}` . }}"} {
		values := map[string]any{"x": "password: \"hunter2\\\" {{\"`\"}}\n" + broken + "\npin: 'pin4711'"}
		_, err := helm.Templates(c, helm.Options{ReleaseName: "one", Namespace: "default", Values: values}, nil)
		require.ErrorIs(t, err, helm.ErrRender)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.NotContains(t, err.Error(), "pin4711")
	}
}
