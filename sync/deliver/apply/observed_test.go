package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"waybill.dev/waybill/api/v1alpha1"
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields)}
}

func partial(entries ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: entries}}
}

// C53: only what is ours counts.
func TestFieldsOf(t *testing.T) {
	const manager = v1alpha1.FieldManager
	ours := partial(entry(manager, "Apply", "", `{"f:data":{"f:b":{},"f:a":{}}}`))
	cases := map[string]struct {
		reason string
		object *metav1.PartialObjectMetadata
		same   bool
	}{
		"OtherOrder": {"the order of keys is an accident", partial(entry(manager, "Apply", "", `{"f:data":{"f:a":{},"f:b":{}}}`)), true},
		"Others": {"others may have fields of their own", partial(entry("kubectl-edit", "Update", "", `{"f:data":{"f:c":{}}}`),
			entry(manager, "Apply", "", `{"f:data":{"f:a":{},"f:b":{}}}`)), true},
		"Update":      {"we do not update", partial(entry(manager, "Apply", "", `{"f:data":{"f:a":{},"f:b":{}}}`), entry(manager, "Update", "", `{}`)), true},
		"Subresource": {"we do not write status", partial(entry(manager, "Apply", "", `{"f:data":{"f:a":{},"f:b":{}}}`), entry(manager, "Apply", "status", `{}`)), true},
		"Taken":       {"somebody took a field", partial(entry(manager, "Apply", "", `{"f:data":{"f:a":{}}}`)), false},
		"Gone":        {"somebody took all of them", partial(), false},
		"Helm":        {"Helm's fields are ours", partial(entry(v1alpha1.HelmFieldManager, "Update", "", `{"f:data":{"f:a":{}}}`)), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.same, fieldsOf(ours) == fieldsOf(tc.object), tc.reason)
			whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.object)
			assert.NoError(t, err)
			assert.Equal(t, fieldsOf(tc.object), fieldsOf(&unstructured.Unstructured{Object: whole}), "both ways to read it agree")
		})
	}
	assert.Equal(t, digest{}, fieldsOf(partial()))
}

func TestFieldsOf_oddObjects(t *testing.T) {
	for _, metadata := range []any{nil, 7, map[string]any{"managedFields": 7}, map[string]any{"managedFields": []any{7, map[string]any{}}}} {
		assert.Equal(t, digest{}, fieldsOf(&unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}))
	}
	assert.Equal(t, digest{}, fieldsOf(partial(entry(v1alpha1.FieldManager, "Apply", "", "{"))))
}

func TestOwner(t *testing.T) {
	owner := Owner{HubID: "hub", Kind: "GitSync", Namespace: "team", Name: "site"}
	assert.Equal(t, "hub/GitSync/team/site", owner.String())
	assert.Regexp(t, "^[0-9a-f]{40}$", owner.Hash())
	for mark, want := range map[string]bool{"hub/GitSync/team/site": true, "hub/Kind//name": true, "": false, "a/b/c": false, "//c/d": false, "a/b/c/d/e": false} {
		object := partial()
		object.Annotations = map[string]string{v1alpha1.OwnerAnnotation: mark}
		found, ok := OwnerOf(object)
		assert.Equal(t, want, ok, mark)
		if ok {
			assert.Equal(t, mark, found.String())
		}
	}
}

// fieldsOf identifies the set of fields of an object that our applies set, or Helm on our behalf.
// It is the same whether the object came as JSON or as protobuf.
func fieldsOf(object metav1.Object) digest {
	sets, _ := owned(object)
	return fieldsDigest(sets)
}
