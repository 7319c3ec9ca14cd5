package release

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	found := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &found))
	return found
}

const live = `
metadata:
  managedFields:
    - {manager: helm, operation: Update, fieldsType: FieldsV1, fieldsV1: {
        "f:data": {"f:a": {}, "f:b": {}},
        "f:spec": {"f:list": {"k:{\"name\":\"x\",\"port\":80}": {".": {}, "f:name": {}, "f:value": {}}}, "f:set": {"v:\"one\"": {}}, "f:whole": {}, "f:empty": {}, "f:emptyList": {}}}}
    - {manager: waybill-helm, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:c": {}}}}
    - {manager: helm, operation: Update, subresource: status, fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:phase": {}}}}
    - {manager: others, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:theirs": {}}, "f:spec": {"f:list": {"k:{\"name\":\"y\",\"port\":80}": {".": {}}},
        "f:empty": {"f:theirs": {}}, "f:emptyList": {"k:{\"name\":\"y\"}": {".": {}}}, "f:whole": {}}}}
`

// C35: a record that any user may have written gives away only fields that Helm has set.
func TestSetByHelm(t *testing.T) {
	cases := map[string]struct {
		reason, claimed, want string
	}{
		"Fields":      {"Helm's, of both managers", `{data: {a: "1", c: "3"}}`, `{data: {a: "1", c: "3"}}`},
		"Others":      {"of another manager, and of none", `{data: {theirs: "x", unknown: "x"}, metadata: {finalizers: [x]}}`, `{}`},
		"Subresource": {"it is not of a release", `{status: {phase: x}}`, `{}`},
		"Item":        {"with its keys; the default of one may be left out", `{spec: {list: [{name: x, value: v, other: o}, {name: y, value: v}]}}`, `{spec: {list: [{name: x, value: v}]}}`},
		"OtherItem":   {"another key", `{spec: {list: [{name: x, port: 81, value: v}]}}`, `{}`},
		"Set":         {"an item by its value", `{spec: {set: [one, two]}}`, `{spec: {set: [one]}}`},
		"Whole":       {"a field that is managed as a whole", `{spec: {whole: {a: [1]}}}`, `{spec: {whole: {a: [1]}}}`},
		"Empty":       {"others have filled since what Helm has set to nothing", `{spec: {empty: {theirs: x, more: x}, emptyList: [{name: y}]}}`, `{}`},
		"OtherType":   {"what is no object any more", `{data: text, spec: {list: text}}`, `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := setByHelm(&unstructured.Unstructured{Object: parse(t, tc.claimed)}, &unstructured.Unstructured{Object: parse(t, live)})
			require.NoError(t, err)
			assert.Equal(t, parse(t, tc.want), set, tc.reason)
		})
	}
}

// Objects of other kinds than Kubernetes' own are merged as plain JSON.
func TestMerge_ofOtherKinds(t *testing.T) {
	m, err := mergeOf(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	require.NoError(t, err)
	base, err := m.join([]byte(`{"spec":{"a":1}}`), []byte(`{"spec":{"b":2}}`))
	require.NoError(t, err)
	patch, err := m.threeWay(base, []byte(`{"spec":{"a":1}}`), []byte(`{"spec":{"a":1,"b":2,"theirs":3}}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"spec":{"b":null}}`, string(patch))
}
