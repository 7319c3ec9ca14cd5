package kustomize_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/kustomize"
)

// What is wrong with a Secret is said without what is in it: a Problem goes into status and events.
func TestRender_problemsRepeatNoSecrets(t *testing.T) {
	const patch = "patches: [{patch: '{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: hunter2}}'"
	cases := map[string]struct{ kustomization, file, want string }{
		"Literal":         {"secretGenerator: [{name: s, literals: [password=hunter2, hunter2-without]}]", "app/kustomization.yaml", `secretGenerator "s": literals[1] is not of the form key=value`},
		"LiteralNoKey":    {"secretGenerator: [{name: s, literals: ['=hunter2']}]", "app/kustomization.yaml", "literals[0]"},
		"ConfigMap":       {"configMapGenerator: [{name: s, literals: [hunter2]}]", "app/kustomization.yaml", `configMapGenerator "s": literals[0]`},
		"Env":             {"secretGenerator: [{name: s, envs: [bad.env]}]", "app/bad.env", "not valid UTF-8"},
		"OldEnv":          {"secretGenerator: [{name: s, env: bad.env}]", "app/bad.env", "not valid UTF-8"},
		"Twice":           {"secretGenerator: [{name: s, literals: [password=hunter2, password=hunter2]}]", "app/kustomization.yaml", "password"},
		"TwoGenerators":   {"secretGenerator: [{name: s, literals: [password=hunter2]}, {name: s, literals: [password=hunter2]}]", "app/kustomization.yaml", "merging from generator: "},
		"Patch":           {"patches: [{patch: 'stringData: {password: hunter2'}]", "app/kustomization.yaml", "patches[0] is neither"},
		"PatchText":       {"patches: [{patch: 'hunter2'}]", "app/kustomization.yaml", "patches[0] is neither"},
		"PatchNoKind":     {"patches: [{patch: 'stringData: {password: hunter2}'}]", "app/kustomization.yaml", "patches[0] lacks kind"},
		"PatchNoName":     {"patches: [{patch: '{kind: Secret, stringData: {password: hunter2}}'}]", "app/kustomization.yaml", "patches[0] lacks metadata.name"},
		"PatchBoth":       {patch + ", path: a.yaml}]", "app/kustomization.yaml", "PatchTransformer"},
		"PatchMissing":    {patch + "}]", "app/kustomization.yaml", "no resource matches"},
		"PatchTwoTargets": {"patches: [{target: {kind: Secret}, patch: \"{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {p: 'hunter2 \\\"]'}}\\n---\\n{apiVersion: v1, kind: Secret, metadata: {name: t}}\"}]", "app/kustomization.yaml", "an inline patch"},
		"JSONPatch":       {"patches: [{patch: '[{op: add, path: /data/password, value: hunter2}]'}]", "app/kustomization.yaml", "patches[0] is a JSON patch, which needs a target"},
		"JSONPatchOp":     {"patches: [{target: {kind: ConfigMap}, patch: '[{\"op\": \"replace\", \"path\": \"/data/password\", \"value\": \"hunter2\"}]'}]", "app/kustomization.yaml", "/data/password"},
		"JSONPatchText":   {"patches: [{target: {kind: ConfigMap}, patch: '[hunter2]'}]", "app/kustomization.yaml", "an inline patch"},
		"OldJSONPatch":    {"patchesJson6902: [{target: {version: v1, kind: ConfigMap, name: a}, patch: '[hunter2]'}]", "app/kustomization.yaml", "PatchJson6902Transformer"},
		"OldPatch":        {"patchesStrategicMerge: ['{kind: Secret, stringData: {password: hunter2}}']", "app/kustomization.yaml", "patchesStrategicMerge[0] lacks metadata.name"},
		"OldPatchMail":    {"patchesStrategicMerge: [\"kind: Secret\\nstringData: {user: a@hunter2.example}\"]", "app/kustomization.yaml", "patchesStrategicMerge[0] lacks metadata.name"},
		"Index": {
			"replacements: [{source: {kind: Secret, name: s, fieldPath: stringData.password, options: {delimiter: /, index: 7}}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.x]}]}]\nresources: [s.yaml]",
			"app/kustomization.yaml", "out of bounds",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			k := c.kustomization
			if name != "Index" {
				k += "\nresources: [a.yaml]"
			}
			objects, problems := render(t, files(map[string]string{
				"app/kustomization.yaml": k,
				"app/a.yaml":             configMap,
				"app/s.yaml":             "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n",
				"app/bad.env":            "user=me\npassword=hunter2\xff\n",
			}), kustomize.Limits{})
			assert.Empty(t, objects)
			require.Len(t, problems, 1)
			assert.Equal(t, manifest.ReasonBuildFailed, problems[0].Reason)
			assert.Equal(t, c.file, problems[0].File)
			assert.Contains(t, problems[0].Message, c.want)
			assert.NotContains(t, problems[0].Message, "hunter2")
		})
	}
}
