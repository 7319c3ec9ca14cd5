package diff

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/manifest"
)

// P9: a definition stays for the objects of its kind that stay, which would be deleted with it.
func TestKeepFoundations_definitions(t *testing.T) {
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "tables.example.com"},
		"spec": map[string]any{"group": "example.com", "names": map[string]any{"kind": "Table", "plural": "tables"}},
	}}
	live := &unstructured.Unstructured{Object: map[string]any{}}
	table := manifest.ID{Group: "example.com", Version: "v1", Kind: "Table", Namespace: "team", Name: "one"}
	of := func(group, kind string) manifest.ID {
		id := table
		id.Group, id.Kind = group, kind
		return id
	}
	for name, tc := range map[string]struct {
		reason string
		other  change
		want   Action
	}{
		"kept":               {"somebody wants it to stay", change{id: table, before: live, after: live, note: "is kept"}, Kept},
		"refused":            {"it cannot be deleted", change{id: table, note: "forbidden", refused: true}, Kept},
		"deleted":            {"nothing of its kind stays", change{id: table, before: live}, Deleted},
		"of another kind":    {"it is no object of the kind", change{id: of("example.com", "Chair"), before: live, note: "is kept"}, Deleted},
		"of another group":   {"it is no object of the kind", change{id: of("example.org", "Table"), before: live, note: "is kept"}, Deleted},
		"that may be either": {"it is not known whether it stays", change{id: table, omitted: errors.New("forbidden")}, Deleted},
	} {
		t.Run(name, func(t *testing.T) {
			removals := []change{{before: crd}, tc.other}
			keepFoundations(removals)
			assert.Equal(t, tc.want, removals[0].action(), tc.reason)
			assert.Equal(t, tc.other, removals[1], "only what others depend on is kept")
		})
	}
}
