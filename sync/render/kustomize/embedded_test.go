package kustomize_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/render/kustomize"
)

// The path of a replacement may lead into the YAML that is the text of a field: kustomize parses the
// text, and writes it again, as JSON without aliases if it begins with a brace.
func TestRender_replacementsWithinTextsAreBounded(t *testing.T) {
	embedded := `{a: &x "` + strings.Repeat("y", 20_000) + `", b: [` + strings.Repeat("*x, ", 1000) + `0], c: d}`
	into := func(name string) string {
		return "replacements:\n" + fmt.Sprintf("- {source: {kind: ConfigMap, name: a, fieldPath: data.key}, targets: [{select: {kind: ConfigMap, name: %s}, fieldPaths: [data.text.c]}]}\n", name)
	}
	object := func(text string) string {
		return strings.Replace(configMap, "a}", "b}", 1) + "data: {text: '" + text + "'}\n"
	}
	const resources = "resources: [a.yaml, b.yaml]\n"
	escaped := func(and, star string) string {
		return `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"text": "` +
			strings.NewReplacer(`"`, `\"`, "&", and, "*", star).Replace(embedded) + `"}}`
	}
	writes := func(source, from, options, target, to, targetOptions string) string {
		return fmt.Sprintf("- {source: {kind: ConfigMap, name: %s, fieldPath: %s, options: {%s}}, targets: "+
			"[{select: {kind: ConfigMap, name: %s}, fieldPaths: [%s], options: {%s}}]}\n", source, from, options, target, to, targetOptions)
	}
	const within = "write into the YAML in that text"
	patch := "patches:\n- target: {name: a}\n  patch: |-\n    [{op: add, path: /data/text, value: '" + embedded + "'}]\n"
	cases := map[string]struct {
		reason, kustomization, text string
		limits                      kustomize.Limits
		want                        string
	}{
		"plain":          {"what people write", resources + into("b"), `{"c": "d"}`, kustomize.Limits{}, ""},
		"no YAML":        {"nor is every text", resources + into("a"), "{{ & }} *", kustomize.Limits{}, ""},
		"no replacement": {"nobody parses it", resources, embedded, kustomize.Limits{}, ""},
		"field":          {"of an object", resources + into("b"), embedded, kustomize.Limits{}, "b.yaml: limit AliasBytes is 5242880"},
		"file":           {"of a generator", resources + into("c") + "configMapGenerator: [{name: c, files: [text]}]", "", kustomize.Limits{}, "text: limit AliasBytes is 5242880"},
		"variables":      {"of a generator, too", resources + into("c") + "configMapGenerator: [{name: c, envs: [env]}]", "", kustomize.Limits{}, "env: limit AliasBytes is 5242880"},
		"literal": {
			"of another", resources + into("c") + "configMapGenerator: [{name: c, literals: ['text=" + embedded + "']}]", "", kustomize.Limits{},
			"kustomization.yaml: limit AliasBytes is 5242880",
		},
		"quoted literal": {
			"kustomize takes the quotes off", resources + into("c") + "configMapGenerator: [{name: c, literals: ['text=''" + embedded + "''']}]", "", kustomize.Limits{},
			"kustomization.yaml: limit AliasBytes is 5242880",
		},
		"patch":           {"a patch in the kustomization", resources + into("a") + patch, "", kustomize.Limits{}, "kustomization.yaml: limit AliasBytes is 5242880"},
		"escaped":         {"the signs need not be in the file", "resources: [a.yaml, b.yaml, escaped.yaml]\n" + into("c"), "", kustomize.Limits{}, "escaped.yaml: limit AliasBytes is 5242880"},
		"escaped in JSON": {"nor in this one", "resources: [a.yaml, b.yaml, escaped.json]\n" + into("c"), "", kustomize.Limits{}, "escaped.json: limit AliasBytes is 5242880"},
		"escaped in a patch": {
			"nor in a patch", resources + into("a") + `patches: [{target: {name: a}, patch: '[{"op": "add", "path": "/data/text", "value": "{a: \u0026x ` +
				strings.Repeat("y", 20_000) + `, b: [` + strings.Repeat(`\u002ax, `, 1000) + `0]}"}]'}]`, "", kustomize.Limits{},
			"kustomization.yaml: limit AliasBytes is 5242880",
		},
		"a part of a text": {
			"what is no YAML as a whole", resources + into("a") + writes("b", "data.text", "delimiter: '|', index: 1", "a", "data.text", "create: true"),
			"@|" + embedded, kustomize.Limits{}, "kustomization.yaml: " + within,
		},
		"a part by a third": {
			"whoever it is handed on by", resources + into("a") + writes("b", "data.text", "delimiter: '|', index: 1", "b", "data.key", "") +
				writes("b", "data.key", "", "a", "data.text", "create: true"), "@|" + embedded, kustomize.Limits{}, "kustomization.yaml: " + within,
		},
		"joined": {
			"each of the two has one of the signs", resources + into("b") + writes("a", "data.key", "", "b", "data.text", "delimiter: ',', index: 99"),
			"{c: d, a: &x y, b: [0", kustomize.Limits{}, "kustomization.yaml: " + within,
		},
		"dense":       {"nobody parses it", resources + "configMapGenerator: [{name: c, files: [dense]}]", "", kustomize.Limits{Nodes: 1000}, ""},
		"dense, read": {"it takes more memory than its text", resources + into("c") + "configMapGenerator: [{name: c, files: [dense]}]", "", kustomize.Limits{Nodes: 1000}, "dense: limit Nodes is 1000"},
		"long": {
			"each path has it parsed again", resources + into("b"), "{c: " + strings.Repeat("x", 100_000) + "}",
			kustomize.Limits{Changes: 10_000}, "kustomization.yaml: limit Changes is 10000",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			key := "data: {key: value}\n"
			if name == "no YAML" {
				key = "data: {key: value, text: {c: d}}\n"
			}
			objects, problems := render(t, files(map[string]string{
				"app/kustomization.yaml": c.kustomization, "app/a.yaml": configMap + key, "app/b.yaml": object(c.text),
				"app/text": embedded, "app/env": "text=" + embedded + "\n", "app/escaped.yaml": escaped(`\x26`, `\x2a`),
				"app/escaped.json": escaped(`\u0026`, `\u002a`), "app/dense": "[&x 0, *x, " + strings.Repeat("0,", 5000) + "0]",
			}), c.limits)
			if c.want == "" {
				require.Empty(t, problems, c.reason)
				assert.GreaterOrEqual(t, len(objects), 2, c.reason)
				return
			}
			assert.Empty(t, objects, c.reason)
			require.Len(t, problems, 1, c.reason)
			file, limit, _ := strings.Cut(c.want, ": ")
			assert.Equal(t, "app/"+file, problems[0].File, c.reason)
			assert.Contains(t, problems[0].Message, limit, c.reason)
		})
	}
}
