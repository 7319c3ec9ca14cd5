package ignore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/ignore"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	json, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, object.UnmarshalJSON(json))
	return object
}

func pointers(t *testing.T, object *unstructured.Unstructured, list ...string) *ignore.Pointers {
	t.Helper()
	rules, err := ignore.Compile([]v1alpha1.IgnoredDifference{{JSONPointers: list}})
	require.NoError(t, err)
	return rules.Of(object, "a")
}

const wantedText = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {checksum: one}}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - {name: web, image: "web:1", args: [one], ports: [{containerPort: 80}]}
      - {name: extra, image: "extra:1"}`

// liveText is an object that another manager has scaled, of which the image was set by another one, and to
// which a container was added before ours.
const liveText = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: {checksum: two}
  managedFields:
  - manager: waybill
    operation: Apply
    apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:annotations: {f:checksum: {}}}
      f:spec:
        f:paused: {}
        f:template: {f:spec: {f:containers: {
          'k:{"name":"web"}': {.: {}, f:name: {}, f:args: {}, f:ports: {'k:{"containerPort":80,"protocol":"TCP"}': {.: {}, f:containerPort: {}}}}}}}
  - manager: waybill
    operation: Update
    apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1: {f:metadata: {f:annotations: {f:note: {}}}}
  - manager: autoscaler
    operation: Update
    subresource: scale
    apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1: {f:spec: {f:replicas: {}}}
  - manager: images
    operation: Update
    apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1: {f:spec: {f:template: {f:spec: {f:containers: {'k:{"name":"web"}': {f:image: {}}, 'k:{"name":"sidecar"}': {.: {}, f:name: {}, f:image: {}}}}}}}
spec:
  replicas: 9
  paused: true
  template:
    spec:
      containers:
      - {name: sidecar, image: "sidecar:1"}
      - {name: web, image: "web:7", args: [two], ports: [{containerPort: 80, protocol: TCP}]}`

func TestPointers_overALiveObject(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		pointers []string
		// field, by its path of keys and indices, is what is applied, or merged; nil for nothing.
		field          []any
		applied, merge any
		// repeats: what is applied is what the cluster has.
		repeats bool
	}{
		"SomebodyElses": {
			"others manage it: it is given up", []string{"/spec/replicas"}, []any{"spec", "replicas"}, nil, int64(9), false,
		},
		"OursAlone": {
			"to leave it out would remove it", []string{"/metadata/annotations/checksum"}, []any{"metadata", "annotations", "checksum"}, "two", "two", true,
		},
		"NobodysYet": {
			"the source names it, the cluster does not have it: that is how others left it",
			[]string{"/spec/minReadySeconds"}, []any{"spec", "minReadySeconds"}, nil, nil, false,
		},
		"NotWanted": {
			"the source does not name it, and we manage it: it stays", []string{"/spec/paused"}, []any{"spec", "paused"}, true, true, true,
		},
		"InAnItem": {
			"the item is found by its name, wherever the list has it", []string{"/spec/template/spec/containers/0/image"},
			[]any{"spec", "template", "spec", "containers", 0, "image"}, nil, "web:7", false,
		},
		"OursInAnItem": {
			"a list without keys is one field", []string{"/spec/template/spec/containers/0/args"},
			[]any{"spec", "template", "spec", "containers", 0, "args"}, []any{"two"}, []any{"two"}, true,
		},
		"InAListWithoutKeys": {
			"and so is what is in it", []string{"/spec/template/spec/containers/0/args/0"},
			[]any{"spec", "template", "spec", "containers", 0, "args"}, []any{"two"}, []any{"two"}, true,
		},
		"KeyOfAnItem": {
			"an item without its keys would be none", []string{"/spec/template/spec/containers/0/name"},
			[]any{"spec", "template", "spec", "containers", 0, "name"}, "web", "web", true,
		},
		"DefaultedKey": {
			"the source leaves out a key that has a default", []string{"/spec/template/spec/containers/0/ports/0/hostPort"},
			[]any{"spec", "template", "spec", "containers", 0, "ports", 0, "containerPort"}, int64(80), int64(80), false,
		},
		"InANewItem": {
			"an item that is not there yet is added as the source has it", []string{"/spec/template/spec/containers/1/image"},
			[]any{"spec", "template", "spec", "containers", 1, "image"}, "extra:1", "extra:1", false,
		},
		"NoSuchItem": {
			"the source has no such item", []string{"/spec/template/spec/containers/7/image"}, []any{"spec", "replicas"}, int64(2), int64(2), false,
		},
		"NoSuchParent": {
			"the source has nothing there", []string{"/data/key"}, []any{"spec", "replicas"}, int64(2), int64(2), false,
		},
		"NotANumber": {
			"a list has no keys", []string{"/spec/template/spec/containers/web/image"}, []any{"spec", "replicas"}, int64(2), int64(2), false,
		},
		"BeyondAText": {
			"there is nothing in a text", []string{"/spec/template/spec/containers/0/image/0"},
			[]any{"spec", "template", "spec", "containers", 0, "image"}, "web:1", "web:1", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, live := parse(t, wantedText), parse(t, liveText)
			p := pointers(t, wanted, tc.pointers...)
			applied, repeats, err := p.ToApply(wanted.Object, live, "waybill")
			require.NoError(t, err)
			assert.Equal(t, tc.repeats, repeats, tc.reason)
			assert.Equal(t, tc.applied, lookUp(applied, tc.field...), "applied: "+tc.reason)
			merged, err := p.ToMerge(wanted.Object, live)
			require.NoError(t, err)
			assert.Equal(t, tc.merge, lookUp(merged, tc.field...), "merged: "+tc.reason)
			assert.Equal(t, parse(t, wantedText), wanted, "what is wanted stays as it is")
			assert.Equal(t, parse(t, liveText), live)
		})
	}
}

func lookUp(in any, way ...any) any {
	for _, part := range way {
		switch part := part.(type) {
		case string:
			in = in.(map[string]any)[part]
		case int:
			in = in.([]any)[part]
		}
	}
	return in
}

// All containers are ignored: of ours, what only we have set is applied on, and nothing of theirs.
func TestPointers_aWholeList(t *testing.T) {
	wanted, live := parse(t, wantedText), parse(t, liveText)
	p := pointers(t, wanted, "/spec/template/spec/containers")
	applied, _, err := p.ToApply(wanted.Object, live, "waybill")
	require.NoError(t, err)
	assert.Equal(t, []any{map[string]any{
		"name": "web", "args": []any{"two"}, "ports": []any{map[string]any{"containerPort": int64(80), "protocol": "TCP"}},
	}}, lookUp(applied, "spec", "template", "spec", "containers"))
	merged, err := p.ToMerge(wanted.Object, live)
	require.NoError(t, err)
	assert.Equal(t, lookUp(live.Object, "spec", "template", "spec", "containers"), lookUp(merged, "spec", "template", "spec", "containers"))
}

// Two items are removed, and none that comes after them.
func TestPointers_severalItems(t *testing.T) {
	wanted := parse(t, `{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: {list: [a, b, c, d]}}`)
	live := parse(t, `{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: {list: []}}`)
	merged, err := pointers(t, wanted, "/spec/list/0", "/spec/list/2", "/spec/list/2").ToMerge(wanted.Object, live)
	require.NoError(t, err)
	assert.Equal(t, []any{"b", "d"}, lookUp(merged, "spec", "list"))
}

func TestPointers_whatWasWantedBeforeIsNotRemoved(t *testing.T) {
	before := parse(t, wantedText)
	without := pointers(t, before, "/spec/replicas", "/metadata/annotations/checksum", "/spec/template/spec/containers/1/image", "/data/key").Without(before.Object)
	assert.Nil(t, lookUp(without, "spec", "replicas"))
	assert.Equal(t, map[string]any{"name": "web"}, without["metadata"], "it would go with what holds it")
	assert.Equal(t, map[string]any{"name": "extra"}, lookUp(without, "spec", "template", "spec", "containers", 1))
	assert.Equal(t, parse(t, wantedText), before)
}

// What others hold together with us is given up; what they hold within an empty field of ours too.
func TestPointers_sharedFields(t *testing.T) {
	live := parse(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  finalizers: [ours, both]
  managedFields:
  - {manager: waybill, operation: Apply, fieldsType: FieldsV1, fieldsV1: {f:data: {.: {}, f:both: {}, f:ours: {}}, f:metadata: {f:finalizers: {'v:"ours"': {}, 'v:"both"': {}}, f:labels: {}}}}
  - {manager: other, operation: Apply, fieldsType: FieldsV1, fieldsV1: {f:data: {f:both: {}}, f:metadata: {f:finalizers: {'v:"both"': {}}, f:labels: {f:theirs: {}}}}}
  labels: {theirs: x}
data: {both: "1", ours: "2"}`)
	wanted := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {}, finalizers: [ours, both]}, data: {both: "0", ours: "0"}}`)
	applied, _, err := pointers(t, wanted, "/data", "/metadata/finalizers", "/metadata/labels/theirs").ToApply(wanted.Object, live, "waybill")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"ours": "2"}, applied["data"])
	assert.Equal(t, map[string]any{"name": "a", "labels": map[string]any{}, "finalizers": []any{"ours"}}, applied["metadata"])
}

func TestRules_selectObjects(t *testing.T) {
	object := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web-1, labels: {tier: web}, annotations: {scaled: "yes"}}}`)
	for name, tc := range map[string]struct {
		target *v1alpha1.DifferenceTarget
		want   bool
	}{
		"no target is every object":  {nil, true},
		"nor is an empty one":        {&v1alpha1.DifferenceTarget{}, true},
		"by kind":                    {&v1alpha1.DifferenceTarget{Group: "apps", Version: "v1", Kind: "Deployment"}, true},
		"another group":              {&v1alpha1.DifferenceTarget{Group: "extensions", Kind: "Deployment"}, false},
		"the core group":             {&v1alpha1.DifferenceTarget{Group: "^$"}, false},
		"the kind as a whole":        {&v1alpha1.DifferenceTarget{Kind: "Deploy"}, false},
		"one of two":                 {&v1alpha1.DifferenceTarget{Kind: "StatefulSet|Deployment"}, true},
		"by a part of the name":      {&v1alpha1.DifferenceTarget{Name: "web-.*"}, true},
		"not by the start of it":     {&v1alpha1.DifferenceTarget{Name: "web"}, false},
		"in the namespace":           {&v1alpha1.DifferenceTarget{Namespace: "a"}, true},
		"in another":                 {&v1alpha1.DifferenceTarget{Namespace: "b"}, false},
		"by label":                   {&v1alpha1.DifferenceTarget{LabelSelector: "tier in (web,api)"}, true},
		"without the label":          {&v1alpha1.DifferenceTarget{LabelSelector: "tier=api"}, false},
		"by annotation":              {&v1alpha1.DifferenceTarget{AnnotationSelector: "scaled"}, true},
		"without the annotation":     {&v1alpha1.DifferenceTarget{AnnotationSelector: "!scaled"}, false},
		"all of it has to match":     {&v1alpha1.DifferenceTarget{Kind: "Deployment", Name: "api"}, false},
		"of one version of the kind": {&v1alpha1.DifferenceTarget{Version: "v1beta1"}, false},
	} {
		rules, err := ignore.Compile([]v1alpha1.IgnoredDifference{{Target: tc.target, JSONPointers: []string{"/spec/replicas"}}})
		require.NoError(t, err)
		assert.Equal(t, tc.want, rules.Of(object, "a") != nil, name)
	}
}

func TestCompile_saysWhatIsWrong(t *testing.T) {
	rules, err := ignore.Compile(nil)
	require.NoError(t, err)
	assert.Nil(t, rules.Of(parse(t, wantedText), "a"), "nothing is ignored")
	for want, wrong := range map[string]v1alpha1.IgnoredDifference{
		"target: error parsing":     {Target: &v1alpha1.DifferenceTarget{Name: "("}},
		"target.labelSelector:":     {Target: &v1alpha1.DifferenceTarget{LabelSelector: "a in"}},
		"target.annotationSelector": {Target: &v1alpha1.DifferenceTarget{AnnotationSelector: "a in"}},
		"does not begin with /":     {JSONPointers: []string{"spec"}},
	} {
		_, err := ignore.Compile([]v1alpha1.IgnoredDifference{{}, wrong})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "spec.ignoreDifferences[1]")
	}
}
