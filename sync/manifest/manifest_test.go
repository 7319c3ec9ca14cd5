package manifest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/manifest"
)

func TestID_String(t *testing.T) {
	cases := map[string]struct {
		reason string
		id     manifest.ID
		want   string
	}{
		"Namespaced": {
			reason: "kind and group, then namespace and name; never the version",
			id:     manifest.ID{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "default", Name: "web"},
			want:   "Deployment.apps default/web",
		},
		"Core": {
			reason: "the core group has no name to show",
			id:     manifest.ID{Version: "v1", Kind: "Namespace", Name: "shop"},
			want:   "Namespace shop",
		},
		"KindOnly": {
			reason: "a document without a name still says its kind",
			id:     manifest.ID{Kind: "ConfigMap"},
			want:   "ConfigMap",
		},
		"Empty": {reason: "nothing known, nothing said"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.id.String(), tc.reason)
		})
	}
}

func TestObject_IDIgnoresVersionInKey(t *testing.T) {
	object := manifest.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"namespace": "default", "name": "web"},
	}}}
	older := object.ID()
	older.Version = "v1beta1"

	assert.Equal(t, "v1", object.ID().GroupVersionKind().Version)
	assert.NotEqual(t, object.ID(), older)
	assert.Equal(t, object.ID().Key(), older.Key())
	assert.False(t, object.ID().IsZero())
}

// P12
func TestProblem_ErrorSaysWhere(t *testing.T) {
	id := manifest.ID{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "default", Name: "web"}
	cases := map[string]struct {
		reason  string
		problem manifest.Problem
		want    string
	}{
		"All": {
			reason:  "file, line, object and message",
			problem: manifest.Problem{ID: id, File: "apps/web.yaml", Line: 7, Message: "spec.replicas must be a number"},
			want:    "apps/web.yaml:7: Deployment.apps default/web: spec.replicas must be a number",
		},
		"Cluster": {
			reason:  "the cluster that refused it stands behind the object",
			problem: manifest.Problem{ID: id, Cluster: "eu-1", Message: "forbidden"},
			want:    "Deployment.apps default/web in cluster eu-1: forbidden",
		},
		"ClusterOnly": {
			reason:  "a cluster can fail as a whole",
			problem: manifest.Problem{Cluster: "eu-1", Message: "unreachable"},
			want:    "cluster eu-1: unreachable",
		},
		"FileOnly": {
			reason:  "a file can be unreadable as a whole",
			problem: manifest.Problem{File: "a.yaml", Message: "not valid YAML"},
			want:    "a.yaml: not valid YAML",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.problem.Error(), tc.reason)
		})
	}
}

func TestProblem_IsAnError(t *testing.T) {
	problem := manifest.Problem{Reason: manifest.ReasonInvalidManifest, Message: "bad"}
	var found manifest.Problem
	require.True(t, errors.As(fmt.Errorf("render: %w", problem), &found))
	assert.Equal(t, manifest.ReasonInvalidManifest, found.Reason)
}

// P9: a manifest that is broken may describe what no other describes.
func TestProblem_MayBe(t *testing.T) {
	live := manifest.ID{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "team", Name: "web"}
	with := func(change func(*manifest.ID)) manifest.ID {
		id := live
		change(&id)
		return id
	}
	cases := map[string]struct {
		reason string
		known  manifest.ID
		want   bool
	}{
		"Nothing":        {"it may be anything", manifest.ID{}, true},
		"All":            {"it is the object", live, true},
		"OtherVersion":   {"versions of a kind do not make objects different", with(func(id *manifest.ID) { id.Version = "v1beta1" }), true},
		"OtherGroup":     {"it is another kind", with(func(id *manifest.ID) { id.Group = "example.com" }), false},
		"NoVersion":      {"without apiVersion the group is not known", manifest.ID{Kind: "Deployment", Name: "web"}, true},
		"OtherKind":      {"it is another kind", with(func(id *manifest.ID) { id.Kind = "StatefulSet" }), false},
		"NoKind":         {"its kind may be any", manifest.ID{Name: "web"}, true},
		"OtherName":      {"it is another object", with(func(id *manifest.ID) { id.Name = "api" }), false},
		"NoName":         {"its name may be any", with(func(id *manifest.ID) { id.Name = "" }), true},
		"OtherNamespace": {"it is another object", with(func(id *manifest.ID) { id.Namespace = "other" }), false},
		"NoNamespace":    {"it may be filled in", with(func(id *manifest.ID) { id.Namespace = "" }), true},
		"List":           {"its items may be anything", manifest.ID{Version: "v1", Kind: "ConfigMapList", Name: "x"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, manifest.Problem{ID: tc.known}.MayBe(live), tc.reason)
		})
	}
	node := manifest.ID{Version: "v1", Kind: "Node", Name: "a"}
	assert.True(t, manifest.Problem{ID: manifest.ID{Version: "v1", Kind: "Node", Namespace: "team", Name: "a"}}.MayBe(node),
		"what is cluster-scoped has no namespace, whatever its manifest says")
}
