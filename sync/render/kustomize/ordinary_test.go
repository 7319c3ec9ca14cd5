package kustomize_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/render/kustomize"
)

// Replacements that read what is near to what they write are common, and make nothing grow.
func TestRender_replacementsWithinAnObjectAreMade(t *testing.T) {
	const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - {name: web, image: 'web:2', env: [{name: A, value: of-a}, {name: B, value: of-b}]}
      - {name: migrate, image: 'migrate:1'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-canary}
spec: {template: {spec: {containers: [{name: worker, image: 'canary:1'}]}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: one.example}, {host: two.example}]}
`
	const containers = "spec.template.spec.containers"
	cases := map[string]struct{ reason, from, path, source, to, target, options, want string }{
		"container": {
			"of the same Deployment", "kind: Deployment, name: web", containers + ".[name=web].image", "",
			"kind: Deployment, name: web", containers + ".[name=migrate].image", "", "image: web:2\n        name: migrate",
		},
		"variable": {
			"of the same container", "kind: Deployment, name: web", containers + ".0.env.[name=A].value", "",
			"kind: Deployment, name: web", containers + ".0.env.[name=B].value", "", "name: B\n          value: of-a",
		},
		"rule": {
			"of the same Ingress", "kind: Ingress, name: web", "spec.rules.0.host", "",
			"kind: Ingress, name: web", "spec.rules.1.host", "", "- host: one.example\n  - host: one.example",
		},
		"names": {
			"one contains the other", "kind: Deployment, name: web", containers + ".[name=web].image", "",
			"kind: Deployment, name: web-canary", containers + ".[name=worker].image", "", "image: web:2\n        name: worker",
		},
		"tag": {
			"a part is as long as a part", "kind: Deployment, name: web", containers + ".0.image", "{delimiter: ':', index: 1}",
			"kind: Deployment, name: web-canary", containers + ".0.image", "{delimiter: ':', index: 1}", "image: canary:2\n",
		},
		"tag of all": {
			"even of its own", "kind: Deployment, name: web", containers + ".0.image", "{delimiter: ':', index: 1}",
			"kind: Deployment", containers + ".*.image", "{delimiter: ':', index: 1}", "image: canary:2\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			or := func(options string) string {
				if options == "" {
					return "{}"
				}
				return options
			}
			objects, problems := render(t, files(map[string]string{
				"app/kustomization.yaml": fmt.Sprintf("resources: [web.yaml]\nreplacements:\n- source: {%s, fieldPath: '%s', options: %s}\n"+
					"  targets: [{select: {%s}, fieldPaths: ['%s'], options: %s}]\n", c.from, c.path, or(c.source), c.to, c.target, or(c.options)),
				"app/web.yaml": web,
			}), kustomize.Limits{})
			require.Empty(t, problems, c.reason)
			assert.Contains(t, string(text(t, objects, nil)), c.want, c.reason)
		})
	}
}

// What a change costs depends on what it is about, not on the largest object, or on all of them.
func TestRender_changesOfSmallObjectsAreMade(t *testing.T) {
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: large}\nspec: {a: " + strings.Repeat("x", 1_000_000) + "}\n"
	var targets strings.Builder
	for range 30 {
		targets.WriteString("  - {select: {kind: ConfigMap, name: a}, fieldPaths: [data.other]}\n")
	}
	patched := func(patch string) string {
		return "resources: [a.yaml, crd.yaml]\npatches: [{target: {kind: ConfigMap, name: a}, patch: '" + patch + "'}]\n" +
			"replacements:\n- source: {kind: ConfigMap, name: a, fieldPath: data.key}\n  targets:\n" + targets.String()
	}
	content := map[string]string{
		"app/a.yaml":   configMap + "data: {key: one, other: two}\n",
		"app/crd.yaml": crd,
	}
	var bases strings.Builder
	for i := range 100 {
		fmt.Fprintf(&bases, "- ../base%d\n", i)
		content[fmt.Sprintf("base%d/a.yaml", i)] = strings.Replace(configMap, "a}", fmt.Sprintf("a%d}", i), 1)
		content[fmt.Sprintf("base%d/kustomization.yaml", i)] = fmt.Sprintf(
			"resources: [a.yaml]\npatches:\n- {patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}, data: {k: v}}'}\n"+
				"- {target: {kind: ConfigMap, name: a%d}, patch: '- {op: add, path: /data/more, value: v}'}\n", i, i)
	}
	var configured strings.Builder
	for i := range 30 {
		fmt.Fprintf(&configured, "- ../rollout%d\n", i)
		content[fmt.Sprintf("rollout%d/a.yaml", i)] = strings.Replace(configMap, "a}", fmt.Sprintf("a%d}", i), 1)
		content[fmt.Sprintf("rollout%d/fields.yaml", i)] = "nameReference:\n- kind: ConfigMap\n  fieldSpecs:\n" +
			strings.Repeat("  - {kind: Rollout, path: spec/template/spec/volumes/configMap/name}\n", 20)
		content[fmt.Sprintf("rollout%d/kustomization.yaml", i)] = "resources: [a.yaml]\nconfigurations: [fields.yaml]\n"
	}
	cases := map[string]struct{ reason, kustomization string }{
		"configs":   {"a copy of the same in each folder", "resources:\n" + configured.String()},
		"map":       {"the value is no name", patched("- {op: add, path: /data/more, value: {a: b}}")},
		"list":      {"nor this", patched("- {op: add, path: /data/more, value: [a]}")},
		"empty":     {"nor this", patched(`- {op: add, path: /data/more, value: ""}`)},
		"operation": {"the value is no operation", patched("- {op: add, path: /data/more, value: copy}")},
		"test":      {"what is looked at is not changed", patched("- {op: test, path: /kind, value: ConfigMap}")},
		"name":      {"the kind is the same", patched("- {op: replace, path: /metadata/name, value: a}")},
		"bases":     {"each patch is for an object of its own", "resources:\n" + bases.String()},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			content["app/kustomization.yaml"] = c.kustomization
			objects, problems := render(t, files(content), kustomize.Limits{Changes: 10_000})
			require.Empty(t, problems, c.reason)
			assert.NotEmpty(t, objects, c.reason)
		})
	}
}

// A kustomization of many others is as large as they are together.
func TestRender_manyKustomizationsAreBuilt(t *testing.T) {
	content := map[string]string{"shared/rollouts.yaml": rollouts}
	top := "resources:\n"
	for i := range 200 {
		app := fmt.Sprintf("app%d", i)
		top += "- ../" + app + "\n"
		var all strings.Builder
		for _, kind := range []string{"Deployment", "Service", "ConfigMap", "ServiceAccount", "Role", "RoleBinding", "Ingress", "Rollout"} {
			fmt.Fprintf(&all, "apiVersion: example.com/v1\nkind: %s\nmetadata: {name: %s}\nspec: {template: {spec: {containers: [{name: web, image: web, args: [$(NAME)]}]}}}\n---\n", kind, app)
		}
		content[app+"/all.yaml"] = all.String()
		content[app+"/kustomization.yaml"] = "resources: [all.yaml]\nconfigurations: [../shared/rollouts.yaml]\nnamespace: team-" + app +
			"\nlabels: [{pairs: {app.kubernetes.io/name: " + app + ", app.kubernetes.io/part-of: shop}, includeSelectors: true}]\n" +
			"commonAnnotations: {example.com/owner: the-team-of-" + app + "}\n" +
			"images: [{name: web, newName: registry.example.com/shop/" + app + ", newTag: v1.2.3}]\n"
	}
	content["app/kustomization.yaml"] = top
	objects, problems := render(t, files(content), kustomize.Limits{})
	require.Empty(t, problems)
	assert.Len(t, objects, 1600)
}

// Most of what looks like a variable is one of the container.
func TestRender_aLargeVariableIsWrittenWhereItIsNamed(t *testing.T) {
	objects, problems := render(t, files(map[string]string{
		"app/kustomization.yaml": "resources: [pod.yaml]\nconfigMapGenerator: [{name: large, literals: [x=" + strings.Repeat("x", 1_000_000) + "]}]\n" +
			"vars: [{name: LARGE, objref: {apiVersion: v1, kind: ConfigMap, name: large}, fieldref: {fieldpath: data.x}}]\n",
		"app/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{args: [" + strings.Repeat("$(POD_NAME), ", 500) + "$(LARGE)]}]}\n",
	}), kustomize.Limits{})
	require.Empty(t, problems)
	assert.Len(t, objects, 2)
}

// rollouts are the fields of Rollouts as their authors publish them.
const rollouts = `
nameReference:
- {kind: ConfigMap, version: v1, fieldSpecs: [{path: spec/template/spec/volumes/configMap/name, kind: Rollout}]}
- {kind: Service, version: v1, fieldSpecs: [{path: spec/strategy/canary/stableService, kind: Rollout}]}
commonLabels:
- {path: spec/selector/matchLabels, create: true, kind: Rollout}
- {path: spec/template/metadata/labels, create: true, kind: Rollout}
- {path: spec/template/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels, create: false, kind: Rollout}
- {path: spec/template/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels, create: false, kind: Rollout}
commonAnnotations:
- {path: spec/template/metadata/annotations, create: true, kind: Rollout}
varReference:
- {path: spec/template/spec/containers/args, kind: Rollout}
replicas:
- {path: spec/replicas, create: true, kind: Rollout}
images:
- {path: spec/template/spec/containers/image, kind: Rollout}
`

// A component that many use is applied in each to what that holds.
func TestRender_aSharedReplacementIsMadeInEach(t *testing.T) {
	content := map[string]string{
		"shared/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreplacements:\n" +
			"- source: {kind: Namespace, fieldPath: metadata.name}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.one, data.two]}]\n",
	}
	top := "resources:\n"
	for i := range 50 {
		app := fmt.Sprintf("app%d", i)
		top += "- ../" + app + "\n"
		content[app+"/kustomization.yaml"] = "resources: [namespace.yaml]\ncomponents: [../shared]\nconfigMapGenerator: [{name: " + app +
			", files: [dashboard.json], literals: [one=x, two=x]}]\n"
		content[app+"/namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + app + "}\n"
		content[app+"/dashboard.json"] = `{"a": "` + strings.Repeat("x", 50_000) + `"}`
	}
	content["app/kustomization.yaml"] = top
	objects, problems := render(t, files(content), kustomize.Limits{})
	require.Empty(t, problems)
	assert.Len(t, objects, 100)
}

// Kustomize follows the references of properties only, from types of objects.
func TestRender_otherReferencesMayLeadInCircles(t *testing.T) {
	const object = `"kind": {}, "apiVersion": {}, "metadata": {}`
	for reason, crds := range map[string]string{
		"through items":                `{"a.X": {"Schema": {"properties": {` + object + `, "all": {"type": "array", "items": {"$ref": "a.X"}}}}}}`,
		"through additionalProperties": `{"a.X": {"Schema": {"properties": {` + object + `, "all": {"additionalProperties": {"$ref": "a.X"}}}}}}`,
		"through allOf":                `{"a.X": {"Schema": {"allOf": [{"$ref": "a.X"}], "properties": {` + object + `}}}}`,
		"of no object":                 `{"a.X": {"Schema": {"properties": {"not": {"$ref": "a.X"}}}}}`,
	} {
		objects, problems := render(t, files(map[string]string{
			"app/kustomization.yaml": "resources: [a.yaml]\ncrds: [crds.json]", "app/a.yaml": configMap, "app/crds.json": crds,
		}), kustomize.Limits{})
		assert.Empty(t, problems, reason)
		assert.Len(t, objects, 1, reason)
	}
}
