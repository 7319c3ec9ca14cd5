package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// P9, P12: what is refused holds up no removal but its own.
func TestPrune_goesOnBesideWhatIsRefused(t *testing.T) {
	f := newFixture(t)
	first := f.mustApply(nil, configMap(t, "before", "one"), parse(t, deploymentText))
	f.create("configmaps", configMap(t, "after", "foreign"))
	changed := parse(t, deploymentText)
	changed.Object["spec"].(map[string]any)["selector"] = map[string]any{"matchLabels": map[string]any{"app": "other"}}
	second := f.apply(first.Inventory, configMap(t, "after", "one"), changed)

	require.Len(t, second.Problems, 2)
	assert.Empty(t, second.Warnings)
	assert.Nil(t, f.live("configmaps", "before"))
	assert.NotNil(t, f.live("deployments", "web"), "it is wanted")
	assert.Len(t, second.Inventory, 2)
}

// P12: what cannot be read may describe what no other manifest describes.
func TestPrune_heldByWhatCannotBeRead(t *testing.T) {
	id := func(kind, name string) manifest.ID { return manifest.ID{Version: "v1", Kind: kind, Name: name} }
	cases := map[string]struct {
		reason string
		unread manifest.ID
		stays  []string
		says   []string
	}{
		"Nothing known": {
			"it may be anything", manifest.ID{}, []string{"a", "b", "s"},
			[]string{"broken.yaml:3: nothing is deleted until it is corrected: 3 objects stay that are in no other manifest"},
		},
		"List": {"its items may be anything", id("List", ""), []string{"a", "b", "s"},
			[]string{"broken.yaml:3: nothing is deleted until it is corrected: 3 objects stay that are in no other manifest"}},
		"Identified":     {"it is wanted, and it alone", id("ConfigMap", "a"), []string{"a"}, nil},
		"Not among them": {"it is another object", id("ConfigMap", "c"), nil, nil},
		"No name": {"it may be any of the kind", id("ConfigMap", ""), []string{"a", "b"},
			[]string{"/a: not deleted: broken.yaml:3, which cannot be read, may describe it", "/b: not deleted: broken.yaml:3, which"}},
		"No apiVersion": {"it may be of any group", manifest.ID{Kind: "Secret", Name: "s"}, []string{"s"}, []string{"/s: not deleted: broken.yaml:3, which"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			first := f.mustApply(nil, configMap(t, "a", "one"), configMap(t, "b", "one"), parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: s}}"))
			request := f.request(first.Inventory, configMap(t, "new", "one"))
			request.Unread = []manifest.Problem{{ID: tc.unread, File: "broken.yaml", Line: 3, Reason: manifest.ReasonInvalidManifest, Message: "broken"}}
			second := f.Apply(t.Context(), request)

			require.NoError(t, second.Err)
			require.Empty(t, second.Problems)
			var stays []string
			for _, id := range second.Inventory {
				if id.Name != "new" {
					stays = append(stays, id.Name)
				}
			}
			assert.ElementsMatch(t, tc.stays, stays, tc.reason)
			require.Len(t, second.Warnings, len(tc.says))
			for i, says := range tc.says {
				assert.Equal(t, apply.ReasonPruneHeld, second.Warnings[i].Reason)
				assert.Contains(t, second.Warnings[i].Error(), says)
			}
			for _, name := range stays {
				assert.True(t, f.live("configmaps", name) != nil || f.live("secrets", name) != nil, name)
			}

			request.Unread, request.Inventory = nil, second.Inventory
			requireClean(t, f.Apply(t.Context(), request))
			assert.Nil(t, f.live("configmaps", "a"))
		})
	}
}

// A kind that is not served, or a namespace that does not exist, may be a slip of the pen: the object
// that it is about stays.
func TestPrune_heldByWhatWaits(t *testing.T) {
	for name, slip := range map[string]string{
		"Kind":      "{apiVersion: apps/v1, kind: Deploymnet, metadata: {name: web}}",
		"Group":     "{apiVersion: app/v1, kind: Deployment, metadata: {name: web}}",
		"Namespace": "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: no-such}, spec: {ports: [{port: 80}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			first := f.mustApply(nil, parse(t, deploymentText), configMap(t, "other", "one"))
			second := f.apply(first.Inventory, parse(t, slip))
			require.Len(t, second.Problems, 1)
			assert.NotNil(t, f.live("deployments", "web"))
			assert.Nil(t, f.live("configmaps", "other"), "it has another name")
			require.Len(t, second.Warnings, 1)
			assert.Contains(t, second.Warnings[0].Error(), "Deployment.apps "+f.namespace+"/web: not deleted: web.yaml:1, which waits for its kind or namespace, may replace it")
		})
	}
}

// An object that cannot be changed goes on with what it was made for: the ConfigMap that a generator
// gave a new name is not taken away from it.
func TestPrune_heldByWhatUsesIt(t *testing.T) {
	f := newFixture(t)
	web := func(app, settings string) manifest.Object {
		return parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: `+app+`}}
  template:
    metadata: {labels: {app: `+app+`}}
    spec:
      containers: [{name: web, image: web, envFrom: [{configMapRef: {name: `+settings+`}}]}]
`)
	}
	first := f.mustApply(nil, web("web", "settings-1"), configMap(t, "settings-1", "one"), configMap(t, "unused", "one"))
	second := f.apply(first.Inventory, web("other", "settings-2"), configMap(t, "settings-2", "two"))
	require.Len(t, second.Problems, 1)
	assert.NotNil(t, f.live("configmaps", "settings-1"))
	assert.Nil(t, f.live("configmaps", "unused"))
	require.Len(t, second.Warnings, 1)
	assert.Equal(t, "ConfigMap "+f.namespace+"/settings-1: not deleted: Deployment.apps "+f.namespace+"/web, which could not be applied, may still use it",
		second.Warnings[0].Error())

	third := f.mustApply(second.Inventory, web("web", "settings-2"), configMap(t, "settings-2", "two"))
	assert.Nil(t, f.live("configmaps", "settings-1"))
	assert.Len(t, third.Inventory, 2)
}

// What stays for now keeps its Namespace, which would take it along.
func TestPrune_heldNamespace(t *testing.T) {
	f := newFixture(t)
	first := f.withSpace(nil)
	request := f.request(first.Inventory)
	request.Unread = []manifest.Problem{{ID: manifest.ID{Version: "v1", Kind: "ConfigMap", Name: "stays", Namespace: f.space()}, File: "broken.yaml"}}
	second := f.Apply(t.Context(), request)
	require.Empty(t, second.Problems)
	assert.Len(t, second.Inventory, 2)
	assert.True(t, f.hasSpace())
	_, err := f.admin.dynamic.Resource(resource("configmaps")).Namespace(f.space()).Get(t.Context(), "goes", metav1.GetOptions{})
	require.Error(t, err, "it is in no manifest")
	require.Len(t, second.Warnings, 1)
	assert.Contains(t, second.Warnings[0].Error(), "Namespace "+f.space()+": not deleted: ConfigMap "+f.space()+"/stays stays for now")
}
