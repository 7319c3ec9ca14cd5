package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

// What a file does not name any more goes when it is applied again, by the field manager that applied it before.
func TestDiff_fileWithFewerFields(t *testing.T) {
	cluster := user(t)
	c := clientOf(t, cluster)
	read := func(text string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
		return object
	}
	applied := func(manager string, annotations map[string]string) func(*testing.T, string) {
		return func(t *testing.T, text string) {
			object := read(text)
			object.SetAnnotations(annotations)
			require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager)))
		}
	}
	ways := map[string]func(*testing.T, string){
		"kubectl apply --server-side": applied("kubectl", nil),
		"another client":              applied("ci", nil),
		"a GitSync":                   applied(v1alpha1.FieldManager, map[string]string{v1alpha1.OwnerAnnotation: "id/GitSync/team/site"}),
		"kubectl apply": func(t *testing.T, text string) {
			object := read(text)
			object.SetAnnotations(map[string]string{}) // kubectl notes the map even if it is empty
			last, err := object.MarshalJSON()
			require.NoError(t, err)
			object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(last)})
			require.NoError(t, c.Create(t.Context(), object, client.FieldOwner("kubectl-client-side-apply")))
		},
	}
	kinds := map[string]string{"a built-in kind": "apiVersion: v1\nkind: ConfigMap\ndata", "a custom kind": "apiVersion: databases.example.com/v1\nkind: Database\nspec"}
	for way, deliver := range ways {
		for kind, head := range kinds {
			t.Run(way+"/"+kind, func(t *testing.T) {
				text := head + ": {stays: one, goes: two}\nmetadata: {name: settings, namespace: " + cluster.Namespace(t) + "}\n"
				deliver(t, text)
				patch := []byte(`{"metadata":{"annotations":{"example.com/of-others":"stays"}},"` + head[len(head)-4:] + `":{"of-others":"three"}}`)
				require.NoError(t, c.Patch(t.Context(), read(text), client.RawPatch("application/merge-patch+json", patch), client.FieldOwner("others")))

				got := waybillWith(t, text, "diff", "-f", "-", "--kubeconfig", cluster.KubeconfigFile())
				assert.Equal(t, 0, got.code, got.out)
				assert.Contains(t, got.errOut, "0 refused, 1 as they are\n")
				fewer := head + ": {stays: one}\nmetadata: " + text[len(head+": {stays: one, goes: two}\nmetadata: "):]
				got = waybillWith(t, fewer, "diff", "-f", "-", "--kubeconfig", cluster.KubeconfigFile())
				assert.Equal(t, 1, got.code, got.errOut)
				assert.Contains(t, got.out, "\n-  goes: two\n")
				assert.Contains(t, got.out, "\n   of-others: three\n", "what others have set is not the file's")
				assert.NotContains(t, got.out, "\n-    example.com/of-others", "annotations of others neither")
			})
		}
	}
}
