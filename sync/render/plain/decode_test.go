package plain_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/plain"
)

func renderFile(t *testing.T, name, content string, l plain.Limits) ([]manifest.Object, []manifest.Problem) {
	t.Helper()
	objects, problems, err := plain.Render(t.Context(), fstest.MapFS{name: {Data: []byte(content)}}, plain.Options{Limits: l})
	require.NoError(t, err)
	return objects, problems
}

// head makes a document an object.
const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"

// What kubectl makes of a value is what users expect, down to the types.
func TestRender_valuesAreWhatKubectlMakesOfThem(t *testing.T) {
	for _, value := range []string{
		"1", "-1", "+1", "0", "-0", "007", "0644", "0x1F", "0b11", "1_000", "9223372036854775807", "9223372036854775808", "18446744073709551615",
		"100000000000000000000", "1.0", "1.5", "-1.25e3", "1e3", "1e9", "1e21", "1.5e300", ".5", "1.", "1.0.0",
		"true", "True", "yes", "Yes", "on", "OFF", "n", "y", "truE", `"yes"`, "'1'", "!!str 1", `!!int "1"`, `!!float "1"`,
		"null", "~", "Null", "", "2001-01-01", "2001-12-14t21:59:43.10-05:00", "12:30", "12:30:45", "1:2", "0.1.2",
		"a string", "|\n  text\n  more", ">-\n  folded\n  text", "[]", "{}", "[1, a, {b: c}]", "{a: {b: [1.0]}}", "{1: a, yes: b, 2.5: c}",
		"&a [1, 2]", "{x: &a {y: 1}, z: *a}", "{x: &a {y: 1, z: 2}, w: {<<: *a, z: 3}}", "{a: &x 1, *x : b}",
	} {
		document := head + "value: " + value + "\n"
		var want unstructured.Unstructured
		asJSON, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err, value)
		require.NoError(t, want.UnmarshalJSON(asJSON), value)

		objects, problems := renderFile(t, "a.yaml", document, plain.Limits{})

		require.Empty(t, problems, value)
		require.Len(t, objects, 1, value)
		assert.Equal(t, want.Object["value"], objects[0].Object["value"], value)
	}
}

func TestRender_findsDocumentsAndTheirLines(t *testing.T) {
	cases := map[string]struct {
		reason  string
		content string
		lines   []int
	}{
		"Empty":        {"nothing", "", nil},
		"Comments":     {"only comments", "# a\n---\n# b\n---\n", nil},
		"Null":         {"documents without content", "---\n~\n---\nnull\n", nil},
		"One":          {"no marker at all", head, []int{1}},
		"NoNewline":    {"no newline at the end", strings.TrimSuffix(head, "\n"), []int{1}},
		"Leading":      {"a leading marker and blank lines", "\n---\n\n" + head, []int{4}},
		"Windows":      {"carriage returns", strings.ReplaceAll("---\n"+head+"---\n"+other, "\n", "\r\n"), []int{2, 6}},
		"Mark":         {"a byte order mark", "\ufeff" + head, []int{1}},
		"SameLine":     {"content beside the marker", "--- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n---\n" + other, []int{1, 3}},
		"End":          {"an end marker, and then more", head + "...\n---\n" + other, []int{1, 6}},
		"EndOnly":      {"an end marker alone", head + "...\n" + other, []int{1, 5}},
		"Directive":    {"a directive belongs to what follows", "%YAML 1.1\n---\n" + head + "...\n%YAML 1.1\n---\n" + other, []int{3, 9}},
		"InText":       {"what looks like a marker in a block of text", head + "data:\n  a: |\n    ---\n    b\n   \n---\n" + other, []int{1, 10}},
		"MarkerPrefix": {"a key that begins like a marker", head + "---a: b\n---\n" + other, []int{1, 6}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, problems := renderFile(t, "a.yaml", tc.content, plain.Limits{})
			require.Empty(t, problems, tc.reason)
			var lines []int
			for _, o := range objects {
				lines = append(lines, o.Line)
			}
			assert.Equal(t, tc.lines, lines, tc.reason)
		})
	}
}

const other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"

func TestRender_bombsAreRefused(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString(head + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		previous := string(rune('0' + i - 1))
		bomb.WriteString("a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.TrimSuffix(strings.Repeat("*a"+previous+", ", 10), ", ") + "]\n")
	}
	for name, tc := range map[string]struct {
		file, content string
		limits        plain.Limits
		want          string
	}{
		"Aliases":   {"a.yaml", bomb.String(), plain.Limits{}, "limit AliasNodes is 50000"},
		"Recursion": {"a.yaml", head + "a: &a [*a]\n", plain.Limits{}, "limit AliasNodes is 50000"},
		"ManyYAML":  {"a.yaml", head + "a: [" + strings.Repeat("a,", 1_000_000) + "]\n", plain.Limits{}, "limit Nodes is 400000"},
		"ManyJSON":  {"a.json", `{"a":[` + strings.Repeat("1,", 1_000_000) + "1]}", plain.Limits{}, "limit Nodes is 400000"},
		"LongText":  {"a.yaml", head + "a: &x " + strings.Repeat("y", 100_000) + "\nb: [" + strings.Repeat("*x,", 10_000) + "]", plain.Limits{}, "limit AliasBytes is 5242880"},
		"DeepYAML":  {"a.yaml", head + "a: " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000), plain.Limits{}, "limit Depth is 100"},
		"DeepJSON":  {"a.json", `{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}", plain.Limits{}, "limit Depth is 100"},
		"Size":      {"a.yaml", head, plain.Limits{FileBytes: 10}, "limit FileBytes is 10"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems := renderFile(t, tc.file, tc.content, tc.limits)
			assert.Empty(t, objects)
			require.Len(t, problems, 1)
			assert.Equal(t, manifest.ReasonLimitExceeded, problems[0].Reason)
			assert.ErrorContains(t, problems[0], tc.want)
		})
	}
}

// Bundles of CustomResourceDefinitions are the largest files that users commit.
func TestRender_largeBundleIsNoBomb(t *testing.T) {
	var crd strings.Builder
	crd.WriteString(head + "spec:\n")
	for i := range 50_000 {
		fmt.Fprintf(&crd, "  field%05d:\n    description: what it is for, as documents say\n", i)
	}
	objects, problems := renderFile(t, "a.yaml", crd.String(), plain.Limits{})
	assert.Empty(t, problems)
	assert.Len(t, objects, 1)
}

func TestRender_limitsOnTheWholeAreErrors(t *testing.T) {
	fsys := fstest.MapFS{"a.yaml": {Data: []byte(head)}, "b.yaml": {Data: []byte(other)}}
	for want, limits := range map[string]plain.Limits{
		"limit Objects is 1":     {Objects: 1},
		"limit TotalBytes is 60": {TotalBytes: 60},
		"limit Values is 9":      {Values: 9},
	} {
		_, _, err := plain.Render(t.Context(), fsys, plain.Options{Limits: limits})
		assert.ErrorContains(t, err, want)
	}
}

// What aliases stand for counts in each of many documents, none of which is too large by itself.
func TestRender_manySmallBombsAreOne(t *testing.T) {
	bomb := head + "a: &a [" + strings.Repeat("x,", 100) + "]\nb: &b [" + strings.Repeat("*a,", 20) + "]\nc: [" + strings.Repeat("*b,", 20) + "]\n---\n"
	fsys := fstest.MapFS{"a.yaml": {Data: []byte(strings.Repeat(bomb, 2000))}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := plain.Render(t.Context(), fsys, plain.Options{})
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "limit Values is 1000000")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
}

// P12
func TestRender_problemNamesTheObjectWhereItCan(t *testing.T) {
	_, problems := renderFile(t, "a.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\nspec: {a: 1, a: 2}\n", plain.Limits{})
	require.Len(t, problems, 1)
	assert.EqualError(t, problems[0], `a.yaml:6: Deployment.apps shop/web: key "a" occurs twice in one object`)
}

// P9: which of two names is meant is not known, so that the problem may be about either.
func TestRender_problemDoesNotGuessTheObject(t *testing.T) {
	for _, twice := range []string{"name: web\n  name: api", "name: web\nmetadata: {name: api}"} {
		_, problems := renderFile(t, "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  "+twice+"\n", plain.Limits{})
		require.Len(t, problems, 1)
		assert.Equal(t, manifest.ID{Version: "v1", Kind: "ConfigMap"}, problems[0].ID)
	}
}
