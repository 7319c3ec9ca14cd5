package apply

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"

	"waybill.dev/waybill/sync/manifest"
)

// reading is a Target of which only the dynamic client is used.
type reading struct {
	Target
	client dynamic.Interface
}

func (r reading) Dynamic() dynamic.Interface { return r.client }

func TestLingering_saysWhatNamespacesWaitFor(t *testing.T) {
	var objects []runtime.Object
	waiting := []manifest.ID{{Version: "v1", Kind: "ConfigMap", Namespace: "a", Name: "n-0"}, {Version: "v1", Kind: "Namespace", Name: "gone"}}
	for i := range namespacesExplained {
		name := fmt.Sprintf("n-%d", i)
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z"},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "NamespaceContentRemaining", "status": "True", "message": "Some resources are remaining: pods. has 1 resource instances",
			}}},
		}})
		waiting = append(waiting, manifest.ID{Version: "v1", Kind: "Namespace", Name: name})
	}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...)
	a := &Applier{target: reading{client: client}}

	found := a.lingering(t.Context(), waiting)

	assert.Len(t, found, namespacesExplained-1, "one of those that are read is gone")
	assert.Equal(t, "Some resources are remaining: pods. has 1 resource instances", found[waiting[2]])
	assert.Len(t, client.Actions(), namespacesExplained, "not every namespace is read")
	assert.Nil(t, a.lingering(t.Context(), waiting[:1]), "other kinds are not read")
}
