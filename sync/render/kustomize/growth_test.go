package kustomize_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/render/kustomize"
)

// What a few lines would make of it, nobody can hold in memory, or wait for.
func TestRender_growthIsBounded(t *testing.T) {
	const source = "source: {kind: ConfigMap, name: a, fieldPath: %s}"
	replacement := func(from, to, options string) string {
		return fmt.Sprintf("- {"+source+", targets: [{select: {kind: ConfigMap, name: a}, fieldPaths: ['%s']%s}]}\n", from, to, options)
	}
	const delimiter = ", options: {delimiter: /, index: 99}"
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	indented := strings.ReplaceAll(laughs, "\na", "\n    a")
	var patches strings.Builder
	for i := range 300 {
		fmt.Fprintf(&patches, "- {patch: '[{op: add, path: /data, value: {k: \"%d\"}}]', target: {kind: ConfigMap}}\n", i)
	}
	var copies strings.Builder
	for i := range 16 {
		fmt.Fprintf(&copies, "    - {op: copy, from: /data, path: /data/more%d}\n", i)
	}
	var compared strings.Builder
	for i := range 40 {
		fmt.Fprintf(&compared, "- {"+source+", targets: [{select: {kind: ConfigMap, name: c}, fieldPaths: [%s]}]}\n",
			fmt.Sprintf("data.a%d", i), strings.TrimSuffix(strings.Repeat("data.b, ", 50), ", "))
	}
	many := strings.Builder{}
	for i := range 200 {
		many.WriteString(strings.Replace(configMap, "a}", fmt.Sprintf("a%d}", i), 1) + "data: {key: value, list: '[]'}\n---\n")
	}
	large := strings.Repeat("x", 1_000_000)
	var generators, labels, named strings.Builder
	for i := range 200 {
		fmt.Fprintf(&generators, "- {name: g%d}\n", i)
	}
	for i := range 2000 {
		fmt.Fprintf(&labels, "- {path: data/label%d, create: true}\n", i)
		fmt.Fprintf(&named, "{path: data/label%d, create: true}, ", i)
	}
	written := func(op string) string {
		return "patches:\n- {target: {kind: ConfigMap}, patch: '[{op: add, path: /data/x, value: " + op + "}]'}\n"
	}
	cases := map[string]struct {
		reason, kustomization string
		limits                kustomize.Limits
		want                  string
	}{
		"copies": {
			"each doubles what was there", "patches:\n- target: {kind: ConfigMap}\n  patch: |-\n" + copies.String(),
			kustomize.Limits{}, "copy",
		},
		"many copies": {
			"each may add something to each object", "patches:\n- target: {kind: ConfigMap}\n  patch: |-\n" + strings.Repeat("    - {op: copy, from: /data/key, path: /data/more}\n", 40),
			kustomize.Limits{Growth: 100_000}, "limit Growth is 100000",
		},
		"replacement of itself": {
			"joined to itself", "replacements:\n" + replacement("data.key", "data.key", delimiter), kustomize.Limits{}, "grow again and again",
		},
		"replacement of itself, spelled otherwise": {
			"spaces and empty steps mean nothing", "replacements:\n" + replacement("data.key", "data. key ..", delimiter), kustomize.Limits{}, "grow again and again",
		},
		"replacement of an item": {
			"nor do signs", "replacements:\n" + replacement("data.0.a", "data.+0.a", delimiter), kustomize.Limits{}, "grow again and again",
		},
		"replacement of a part": {
			"joined by something else", "replacements:\n- {source: {kind: ConfigMap, name: a, fieldPath: data.key, options: {delimiter: ':'}}, " +
				"targets: [{select: {kind: ConfigMap, name: a}, fieldPaths: [data.key]" + delimiter + "}]}\n", kustomize.Limits{}, "grow again and again",
		},
		"replacements of each other": {
			"joined to the other, and back", "replacements:\n" + replacement("data.key", "data.other", delimiter) + replacement("data.other", "data.key", delimiter),
			kustomize.Limits{}, "grow again and again",
		},
		"replacement into itself": {
			"all of the data become one of them", "replacements:\n" + replacement("data", "data.key", ""), kustomize.Limits{}, "grow again and again",
		},
		"replacement by another name": {
			"an object has the names that it had before, too", "namePrefix: x-\nreplacements:\n" +
				"- {source: {kind: ConfigMap, name: a, fieldPath: data.key}, targets: [{select: {kind: ConfigMap, name: x-a}, fieldPaths: [data.key]" + delimiter + "}]}\n",
			kustomize.Limits{}, "grow again and again",
		},
		"replacements in a file": {
			"wherever they stand", "replacements: [{path: ../more/replacement.yaml}]", kustomize.Limits{}, "grow again and again",
		},
		"large replacement": {
			"what is written is copied to many places", "replacements:\n" + strings.Repeat(replacement("data.key", "data.other", delimiter), 50),
			kustomize.Limits{Changes: 100}, "limit Changes is 100",
		},
		"large value": {
			"each object has a copy of its own", "resources: [../more/many.yaml]\n" + written(large), kustomize.Limits{}, "limit Growth",
		},
		"large value by an alias": {
			"which kustomize writes out", "resources: [../more/many.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |-\n" +
				"    - {op: test, path: /kind, value: &large " + large + "}\n    - {op: add, path: /data/x, value: *large}\n", kustomize.Limits{}, "limit Growth",
		},
		"large value merged": {
			"by a strategic merge patch", "resources: [../more/many.yaml]\npatches:\n- {target: {kind: ConfigMap}, patch: '{apiVersion: v1, kind: ConfigMap, " +
				"metadata: {name: any}, data: {x: " + large + "}}'}\n", kustomize.Limits{}, "limit Growth",
		},
		"large value joined": {
			"by a replacement", "resources: [../more/many.yaml]\nconfigMapGenerator: [{name: large, literals: [x=" + large + "]}]\nreplacements:\n" +
				"- {source: {kind: ConfigMap, name: large, fieldPath: data.x}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.key]" + delimiter + "}]}\n",
			kustomize.Limits{}, "limit Growth",
		},
		"large value of its own": {
			"a replacement may hold it", "resources: [../more/many.yaml]\nreplacements:\n" +
				"- {sourceValue: " + large + ", targets: [{select: {kind: ConfigMap}, fieldPaths: [data.key]}]}\n", kustomize.Limits{}, "limit Growth",
		},
		"large label of what is generated": {
			"each has one of its own", "generatorOptions: {annotations: {a: " + large + "}}\nconfigMapGenerator:\n" + generators.String(), kustomize.Limits{}, "limit Growth",
		},
		"large name": {
			"of images, written to fields that are none", "configurations: [../more/images.yaml]\nimages: [{name: value, newName: " + large[:100_000] + "}]", kustomize.Limits{}, "limit Growth",
		},
		"label to fields of its own": {
			"it is written to each", "labels: [{pairs: {a: " + large[:100_000] + "}, fields: [" + named.String() + "]}]", kustomize.Limits{}, "limit Growth",
		},
		"large variable": {
			"it is written to each place, which may be spelled otherwise", "resources: [../more/args.yaml]\nconfigMapGenerator: [{name: large, literals: [x=" + large + "]}]\n" +
				"vars: [{name: LARGE, objref: {apiVersion: v1, kind: ConfigMap, name: large}, fieldref: {fieldpath: data.x}}]\n", kustomize.Limits{}, "limit Growth",
		},
		"large value in a list": {
			"each item has a copy of its own", "resources: [../more/list.yaml]\nconfigMapGenerator: [{name: large, literals: [x=" + large + "]}]\nreplacements:\n" +
				"- {source: {kind: ConfigMap, name: large, fieldPath: data.x}, targets: [{select: {kind: Many, name: l}, fieldPaths: ['all.*']" + delimiter + "}]}\n",
			kustomize.Limits{}, "limit Growth",
		},
		"named patches": {
			"the object is looked for among all", "patches:\n- patch: |-\n" + strings.Repeat("    {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: other}}\n    ---\n", 300),
			kustomize.Limits{Comparisons: 500}, "limit Comparisons is 500",
		},
		"named targets": {
			"and so are those that a target names", "patches:\n" +
				strings.Repeat("- {target: {kind: ConfigMap, name: a}, patch: '[{op: add, path: /data/key, value: other}]'}\n", 300),
			kustomize.Limits{Comparisons: 500}, "limit Comparisons is 500",
		},
		"large object": {
			"each patch takes it apart", "configMapGenerator: [{name: large, literals: [x=" + large + "]}]\npatches:\n" +
				strings.Repeat("- {target: {kind: ConfigMap, name: large}, patch: '[{op: add, path: /data/y, value: y}]'}\n", 1500), kustomize.Limits{}, "limit Changes",
		},
		"aliases":          {"in the kustomization itself", laughs, kustomize.Limits{}, "limit AliasNodes is 50000"},
		"aliases in patch": {"and in a patch in it", "patches:\n- target: {kind: ConfigMap}\n  patch: |-\n    " + indented, kustomize.Limits{}, "limit AliasNodes is 50000"},
		"patches": {
			"each is held against each object", "patches:\n" + patches.String(), kustomize.Limits{Changes: 500}, "limit Changes is 500",
		},
		"labels": {
			"each is written into each object", "commonAnnotations: {a: " + strings.Repeat("x", 100_000) + "}", kustomize.Limits{Changes: 1000}, "limit Changes is 1000",
		},
		"values": {"they take more memory than their texts", "", kustomize.Limits{Nodes: 20}, "limit Nodes is 20"},
		"configuration": {
			"each field is looked for in each object", "configurations: [../more/fields.yaml]", kustomize.Limits{Changes: 1000}, "limit Changes is 1000",
		},
		"fields of crds": {
			"and so are these", "crds: [../more/marked.json]", kustomize.Limits{Changes: 1000}, "limit Changes is 1000",
		},
		"properties of crds": {
			"a few types that are large, referred to by many", "crds: [../more/wide.json]", kustomize.Limits{}, "too many definitions",
		},
		"comparisons": {
			"what each replacement writes may be what any of them reads", "replacements:\n" + compared.String(),
			kustomize.Limits{Changes: 500_000}, "limit Changes is 500000",
		},
		"circle":  {"kustomize would follow it until the stack is full", "crds: [../more/circle.json]", kustomize.Limits{}, "lead in circles"},
		"doubled": {"and this one almost", "crds: [../more/doubled.json]", kustomize.Limits{}, "too many definitions"},
		"chain":   {"the path of each is kept, with the names of all before", "crds: [../more/chain.json]", kustomize.Limits{}, "too many definitions"},
		"properties of all crds": {
			"the files of a build add up", "crds: [../more/half.json, ../more/half2.json]", kustomize.Limits{}, "too many definitions",
		},
		"label": {
			"it is written to each field", "configurations: [../more/labels.yaml]\ncommonLabels: {a: " + large[:100_000] + "}", kustomize.Limits{}, "limit Growth",
		},
	}
	doubled := `{"a.X": {"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, "a": {"$ref": "t0"}}}}, `
	for i := range 60 {
		doubled += fmt.Sprintf(`"t%d": {"Schema": {"properties": {"a": {"$ref": "t%d"}, "b": {"$ref": "t%d"}}}}, `, i, i+1, i+1)
	}
	const object = `"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}`
	properties := func(format string, count int) string {
		var out strings.Builder
		for i := range count {
			fmt.Fprintf(&out, `, "p%d": `+format, i)
		}
		return out.String()
	}
	wide := func(types int) string {
		out := "{"
		for i := range types {
			out += fmt.Sprintf(`"a.X%d": {`+object+`, "a": {"$ref": "all"}}}}, `, i)
		}
		out += `"all": {"Schema": {"properties": {"a": {}` + properties(`{"$ref": "large"}`, 60) + `}}}, `
		return out + `"large": {"Schema": {"properties": {"a": {}` + properties(`{}`, 1000) + `}}}}`
	}
	var chain strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&chain, `"t%d": {"Schema": {"properties": {"%s": {"$ref": "t%d", "x-kubernetes-annotation": ""}}}}, `, i, large[:400], i+1)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fsys := files(map[string]string{
				"more/chain.json":         `{"a.X": {` + object + `, "a": {"$ref": "t0"}}}}, ` + chain.String() + `"t2000": {}}`,
				"more/labels.yaml":        "commonLabels:\n" + labels.String(),
				"more/images.yaml":        "images:\n" + labels.String(),
				"more/args.yaml":          "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{args: [" + strings.Repeat(`"\x24(LARGE)", `, 200) + "a]}]}\n",
				"more/half.json":          wide(12),
				"more/half2.json":         wide(12) + " ",
				"app/kustomization.yaml":  strings.Replace("resources: [a.yaml]\n"+c.kustomization, "a.yaml]\nresources: [", "a.yaml, ", 1),
				"more/many.yaml":          many.String(),
				"more/list.yaml":          "apiVersion: v1\nkind: Many\nmetadata: {name: l}\nall: [" + strings.Repeat("a, ", 200) + "a]\n",
				"app/a.yaml":              configMap + "data: {key: value, other: value}\n---\n" + strings.Replace(configMap, "a}", "b}", 1) + "data: {key: value, other: value}\n",
				"more/replacement.yaml":   replacement("data.key", "data.key", delimiter),
				"more/circle.json":        `{"a.X": {"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, "self": {"$ref": "a.X"}}}}}`,
				"more/doubled.json":       doubled + `"t60": {}}`,
				"more/fields.yaml":        "namePrefix:\n" + strings.Repeat("- {path: spec/a}\n", 100),
				"more/marked.json":        `{"a.X": {` + object + properties(`{"x-kubernetes-annotation": ""}`, 100) + `}}}}`,
				"more/wide.json":          wide(20),
				"more/kustomization.yaml": "",
			})
			objects, problems := render(t, fsys, c.limits)
			assert.Empty(t, objects, c.reason)
			require.Len(t, problems, 1, c.reason)
			assert.ErrorContains(t, problems[0], c.want, c.reason)
		})
	}
}

// What people write is none of that.
func TestRender_ordinaryChangesAreMade(t *testing.T) {
	const self = "{kind: ConfigMap, name: a}"
	cases := map[string]struct{ reason, kustomization, key, other string }{
		"copy": {"a small one", "patches: [{target: {kind: ConfigMap}, patch: '[{\"op\": \"copy\", \"from\": \"/data/key\", \"path\": \"/data/other\"}]'}]", "one", "one"},
		"chain": {"one replacement reads what another has written", "replacements:\n" +
			"- {source: {kind: ConfigMap, name: b, fieldPath: data.key}, targets: [{select: " + self + ", fieldPaths: [data.key]}]}\n" +
			"- {source: {kind: ConfigMap, name: a, fieldPath: data.key}, targets: [{select: " + self + ", fieldPaths: [data.other]}]}\n", "three", "three"},
		"part": {"a part of a field", "replacements:\n" +
			"- {source: {kind: ConfigMap, name: b, fieldPath: data.key}, targets: [{select: " + self + ", fieldPaths: [data.key], options: {delimiter: /, index: 1}}]}\n", "one/three", "two"},
		"all": {"one of all is the source", "replacements:\n" +
			"- {source: {kind: ConfigMap, name: b, fieldPath: data.key}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.key]}]}\n", "three", "two"},
		"crds":  {"references to other definitions", "crds: [crds.json]", "one", "two"},
		"twice": {"a file in two places", "configMapGenerator: [{name: x, files: [a.yaml]}, {name: z, files: [a.yaml]}]", "one", "two"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fsys := files(map[string]string{
				"app/kustomization.yaml": "resources: [a.yaml]\n" + c.kustomization,
				"app/a.yaml": configMap + "data: {key: one, other: two}\n---\n" +
					strings.Replace(configMap, "a}", "b}", 1) + "data: {key: three, other: four}\n",
				"app/crds.json": `{"a.X": {"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, "spec": {"$ref": "a.XSpec"}}}}, "a.XSpec": {"Schema": {}}}`,
			})
			objects, problems := render(t, fsys, kustomize.Limits{})
			require.Empty(t, problems, c.reason)
			require.NotEmpty(t, objects, c.reason)
			assert.Equal(t, map[string]any{"key": c.key, "other": c.other}, objects[0].Object["data"], c.reason)
		})
	}
}

func TestRender_endsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := kustomize.Render(ctx, files(map[string]string{"app/kustomization.yaml": "resources: [a.yaml]", "app/a.yaml": configMap}), "app", kustomize.Options{})
	require.ErrorIs(t, err, context.Canceled)
}
