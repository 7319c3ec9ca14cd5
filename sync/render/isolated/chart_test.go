package isolated_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/render/isolated"
)

type values = map[string]any

// template is a chart of one template.
func template(text string) *chart.Chart {
	return &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: "one", Version: "1.0.0"},
		Templates: []*chart.File{{Name: "templates/one.yaml", Data: []byte(text)}},
	}
}

var one = helm.Options{ReleaseName: "one", Namespace: "default"}

// A chart in a process of its own renders to what it does in this process: hooks, subcharts and notes
// included, with the values and dependencies that Helm records. C26, C33
func TestBuilder_rendersChartsAsInThisProcess(t *testing.T) {
	var dirs []string
	for _, pattern := range []string{"../helm/testdata/shop", "../../deliver/release/testdata/*", "../../../examples/charts/*", "../../source/chart/testdata/repo/charts/*"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		dirs = append(dirs, found...)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.1+x", Major: "1", Minor: "36+"}
	given := []helm.Options{
		{ReleaseName: "r", Namespace: "ns"},
		{ReleaseName: "r", Namespace: "ns", Revision: 3, Capabilities: capabilities, Values: values{
			"number": 1, "float": 1e6, "exact": json.Number("12345678901234567890"), "none": nil, "list": []any{nil, int64(1), values{}}, "empty": []any{},
		}},
	}
	builder, compared := isolated.NewBuilder(isolated.Options{}), 0
	for _, dir := range dirs {
		c, err := loader.LoadDir(dir)
		require.NoError(t, err, dir)
		for i, o := range given {
			wanted, wantedErr := helm.Here{}.Render(t.Context(), c, o)
			rendered, err := builder.Render(t.Context(), c, o)
			if wantedErr != nil {
				require.Error(t, err, dir)
				continue
			}
			require.NoError(t, err, dir)
			assert.Equal(t, wanted.Files, rendered.Files, "%s %d", dir, i)
			assert.Equal(t, wanted.Warnings, rendered.Warnings, "%s %d", dir, i)
			assert.JSONEq(t, asJSON(t, wanted.Chart), asJSON(t, rendered.Chart), "%s %d", dir, i)
			compared++
		}
	}
	assert.Greater(t, compared, 10)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// Values keep their types on the way: templates print numbers by it.
func TestBuilder_valuesKeepTheirTypes(t *testing.T) {
	c := template("{{ toYaml .Values }}\n{{ .Values.float }} {{ .Values.int }} {{ kindOf .Values.exact }}")
	c.Values = values{"default": float64(30_000_000), "list": []any{}, "map": values{}}
	o := one
	o.Values = values{"float": float64(1_000_000), "int": int64(1_000_000), "exact": json.Number("1"), "null": nil, "nested": []any{values{"a": nil}, true}}
	wanted, err := helm.Here{}.Render(t.Context(), c, o)
	require.NoError(t, err)
	rendered, err := isolated.NewBuilder(isolated.Options{}).Render(t.Context(), c, o)
	require.NoError(t, err)
	assert.Equal(t, wanted.Files, rendered.Files)
	assert.Contains(t, rendered.Files["one/templates/one.yaml"], "1e+06 1000000 string")
}

// C62: what a chart can make grow without end ends its own process, and the message says what to look for.
func TestBuilder_endsChartsThatGrowWithoutEnd(t *testing.T) {
	cases := map[string]struct {
		reason string
		chart  *chart.Chart
		values values
		says   string
	}{
		"tpl":    {"a value that calls itself", template("{{ tpl .Values.x . }}"), values{"x": "{{ tpl .Values.x . }}"}, "look for templates"},
		"repeat": {"one text, at once", template(`{{ repeat 2000000000 "a" }}`), nil, "more memory than it may (96Mi)"},
		"range":  {"many objects", template(`{{ range until 20000000 }}{{ printf "a%d: b" . }}{{ "\n" }}{{ end }}`), nil, "more memory than it may (96Mi)"},
		"list":   {"a list of numbers", template(`{{ len (until 2000000000) }}`), nil, "more memory than it may (96Mi)"},
		"loops":  {"it takes hours", template(`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`), nil, "takes longer than it may (2s)"},
		"schema": {"a schema that refers to itself", recursiveSchema(), values{"a": values{}}, ""},
	}
	patient := isolated.NewBuilder(isolated.Options{Memory: 96 << 20, Processes: 1})
	quick := isolated.NewBuilder(isolated.Options{Memory: 96 << 20, Processes: 1, Time: 2 * time.Second})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			builder := patient
			if name == "loops" {
				builder = quick
			}
			o := one
			o.Values = c.values
			_, err := builder.Render(t.Context(), c.chart, o)
			if c.says != "" {
				require.ErrorIs(t, err, helm.ErrRender, c.reason)
				assert.ErrorContains(t, err, c.says, c.reason)
				assert.ErrorContains(t, err, "chart one 1.0.0", c.reason)
			}

			rendered, err := builder.Render(t.Context(), template("a: b"), one)
			require.NoError(t, err, "the next chart has a process of its own")
			assert.Equal(t, "a: b", rendered.Files["one/templates/one.yaml"])
		})
	}
}

func recursiveSchema() *chart.Chart {
	c := template("a: b")
	c.Schema = []byte(`{"$ref": "#/definitions/x", "definitions": {"x": {"allOf": [{"$ref": "#/definitions/x"}]}}}`)
	return c
}

// With memory enough, recursion ends at the end of the stack.
func TestBuilder_endsRecursion(t *testing.T) {
	o := one
	o.Values = values{"x": "{{ tpl .Values.x . }}"}
	_, err := isolated.NewBuilder(isolated.Options{Memory: 2 << 30}).Render(t.Context(), template("{{ tpl .Values.x . }}"), o)
	require.ErrorIs(t, err, helm.ErrRender)
	assert.ErrorContains(t, err, "rendering chart one 1.0.0 fills the stack")
}

// A large chart is followed by others in the same process, and so are kustomizations.
func TestBuilder_chartsAndKustomizationsShareProcesses(t *testing.T) {
	builder := isolated.NewBuilder(isolated.Options{Memory: 128 << 20, Processes: 1})
	large := template(`{{ $x := repeat 9000000 "x" }}{{ $x }}`)
	for range 3 {
		rendered, err := builder.Render(t.Context(), large, one)
		require.NoError(t, err)
		assert.Len(t, rendered.Files["one/templates/one.yaml"], 9_000_000)
		objects, problems, err := builder.Build(t.Context(), folder(""), "app")
		require.NoError(t, err)
		assert.Empty(t, problems)
		assert.Len(t, objects, 1)
		for _, word := range []string{"a", "b"} {
			rendered, err = builder.Render(t.Context(), template("a: "+word), one)
			require.NoError(t, err)
			assert.Equal(t, "a: "+word, rendered.Files["one/templates/one.yaml"])
		}
	}
}

// Errors of charts are those of package helm.
func TestBuilder_errorsAreThoseOfTheChart(t *testing.T) {
	builder := isolated.NewBuilder(isolated.Options{})
	shop, err := loader.LoadDir("../helm/testdata/shop")
	require.NoError(t, err)
	o := one
	o.Values = values{"replicas": "two"}
	_, err = builder.Render(t.Context(), shop, o)
	require.ErrorIs(t, err, helm.ErrInvalidValues)
	require.NotErrorIs(t, err, helm.ErrRender)
	assert.ErrorContains(t, err, "replicas: got string, want integer")
	_, err = builder.Validate(t.Context(), shop, o.Values)
	require.ErrorIs(t, err, helm.ErrInvalidValues)
	checked, err := builder.Validate(t.Context(), shop, values{"extra": values{"any": "thing"}})
	require.NoError(t, err)
	assert.Len(t, checked.Warnings, 1)

	_, err = builder.Render(t.Context(), template(`{{ fail "needs a name" }}`), one)
	require.ErrorIs(t, err, helm.ErrRender)
	assert.ErrorContains(t, err, "needs a name")
	_, err = builder.Render(t.Context(), template(`{{ fail (repeat 1000000 "x") }}`), one)
	require.ErrorIs(t, err, helm.ErrRender)
	assert.Less(t, len(err.Error()), 20_000, "an error fits into a status")
	_, err = builder.Render(t.Context(), &chart.Chart{}, one)
	require.ErrorIs(t, err, helm.ErrRender)
	assert.ErrorContains(t, err, "failed unexpectedly", "a panic does not end the process")
}

// Who gives a chart up gets their answer at once, and others its place.
func TestBuilder_endsAChartThatIsGivenUp(t *testing.T) {
	builder := isolated.NewBuilder(isolated.Options{Processes: 1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	o := one
	o.Time = time.Hour
	_, err := builder.Render(ctx, template(`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`), o)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, helm.ErrRender, "it may be tried again")
	_, err = builder.Render(t.Context(), template("a: b"), one)
	require.NoError(t, err)
}

// api answers as an API server with two ConfigMaps in two pages, and counts the requests.
func api(t *testing.T) (*rest.Config, map[string]int) {
	t.Helper()
	asked := map[string]int{}
	configMap := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"number":"7"}}`, name)
	}
	page := func(next string, names ...string) string {
		var items []string
		for _, name := range names {
			items = append(items, configMap(name))
		}
		return `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"continue":"` + next + `"},"items":[` + strings.Join(items, ",") + `]}`
	}
	answers := map[string]string{
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[` +
			`{"name":"configmaps","kind":"ConfigMap","namespaced":true},{"name":"namespaces","kind":"Namespace"}]}`,
		"/api/v1/namespaces/default/configmaps/a":                    configMap("a"),
		"/api/v1/namespaces/default/configmaps?limit=250":            page("2", "a"),
		"/api/v1/namespaces/default/configmaps?continue=2&limit=250": page("", "b"),
		"/api/v1/namespaces/default":                                 `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`,
		"/api/v1/namespaces/huge/configmaps/a":                       `{"apiVersion":"v1","kind":"ConfigMap","data":{"x":"` + strings.Repeat("x", 17<<20) + `"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.RequestURI()]++
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.RequestURI()]
		switch {
		case strings.Contains(r.URL.Path, "/forbidden/"):
			w.WriteHeader(http.StatusForbidden)
			answer = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"not for you"}`
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"nothing there"}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}, asked
}

// Lookups are answered from this side of the pipe, page by page, and only if there is a cluster.
func TestBuilder_looksUpObjects(t *testing.T) {
	config, asked := api(t)
	const text = `
one: {{ (lookup "v1" "ConfigMap" "default" "a").data.number }}
none: {{ lookup "v1" "ConfigMap" "default" "missing" | toJson }}
unknown: {{ lookup "v1" "Nothing" "default" "a" | toJson }}
scope: {{ (lookup "v1" "Namespace" "ignored" "default").metadata.name }}
names: {{ range (lookup "v1" "ConfigMap" "default" "").items }}{{ .metadata.name }} {{ end }}
escape: {{ lookup "v1" "ConfigMap" "default" "missing" | len }}
`
	o := one
	o.Cluster = config
	here, err := helm.Here{}.Render(t.Context(), template(text), o)
	require.NoError(t, err)
	builder := isolated.NewBuilder(isolated.Options{})
	rendered, err := builder.Render(t.Context(), template(text), o)
	require.NoError(t, err)
	assert.Equal(t, here.Files, rendered.Files)
	assert.Equal(t, "\none: 7\nnone: {}\nunknown: {}\nscope: default\nnames: a b \nescape: 0\n", rendered.Files["one/templates/one.yaml"])
	assert.Equal(t, 2, asked["/api/v1"], "each rendering asks once which resources there are")

	before := len(asked)
	rendered, err = builder.Render(t.Context(), template(`{{ lookup "v1" "ConfigMap" "default" "a" | toJson }}`), one)
	require.NoError(t, err)
	assert.Equal(t, "{}", rendered.Files["one/templates/one.yaml"], "without a cluster, lookups find nothing")
	assert.Len(t, asked, before)
}

// What the API server refuses is its error, to be tried again; what a template may not ask for is the chart's.
func TestBuilder_lookupsFail(t *testing.T) {
	config, _ := api(t)
	o := one
	o.Cluster = config
	builder := isolated.NewBuilder(isolated.Options{})
	_, err := builder.Render(t.Context(), template(`{{ lookup "v1" "ConfigMap" "forbidden" "a" }}`), o)
	require.Error(t, err)
	require.NotErrorIs(t, err, helm.ErrRender)
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	assert.ErrorContains(t, err, "one/templates/one.yaml:1:3")
	assert.ErrorContains(t, err, "not for you")
	for reason, text := range map[string]string{
		"more than 16777216 bytes": `{{ lookup "v1" "ConfigMap" "huge" "a" }}`,
		"more than 1000 times":     `{{ range until 2000 }}{{ lookup "v1" "ConfigMap" "default" "missing" }}{{ end }}`,
		"not valid":                `{{ lookup "../v1" "ConfigMap" "default" "a" }}`,
	} {
		_, err := builder.Render(t.Context(), template(text), o)
		require.ErrorIs(t, err, helm.ErrRender, reason)
		assert.ErrorContains(t, err, reason)
	}
}

// A process does not read the environment or files of the program that started it.
func TestBuilder_templatesSeeNoEnvironment(t *testing.T) {
	require.NotEmpty(t, os.Getenv("PATH"))
	rendered, err := isolated.NewBuilder(isolated.Options{}).Render(t.Context(), template(`{{ getHostByName "localhost" }}{{ .Files.Get "/etc/passwd" }}`), one)
	require.NoError(t, err)
	assert.Empty(t, rendered.Files["one/templates/one.yaml"])
}
