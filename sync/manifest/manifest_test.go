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
