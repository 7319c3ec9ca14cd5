package diff

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// Action is what would happen to an object.
type Action string

// Actions.
const (
	Created Action = "created"
	Changed Action = "changed"
	Deleted Action = "deleted"
	// Refused by the API server, or by Waybill.
	Refused Action = "refused"
	// Kept although it is not wanted any more, or held.
	Kept Action = "kept"
	// Recreated: deleted, and created again, because a field cannot be changed.
	Recreated Action = "recreated"

	noChange Action = ""
)

// change is the current and the future state of an object.
type change struct {
	cluster string
	id      manifest.ID

	// before and after are the states; nil if there is none.
	before, after *unstructured.Unstructured

	// note says why the API server, or Waybill, would refuse the object, or why it would be kept
	// although it is not wanted any more.
	note    string
	refused bool
	// recreated says that a field of it cannot be changed, and that it would be deleted and created again.
	recreated bool
	// waits says that it is refused because its kind or namespace does not exist.
	waits bool

	// omitted says why it is not known what would happen; nil if it is.
	omitted error
}

// action returns in a word what would happen.
func (c change) action() Action {
	switch {
	case c.refused:
		return Refused
	case c.recreated:
		return Recreated
	case c.note != "":
		return Kept
	case c.before == nil && c.after == nil:
		return noChange
	case c.before == nil:
		return Created
	case c.after == nil:
		return Deleted
	case text(c.before) != text(c.after):
		return Changed
	}
	return noChange
}

// keep says why an object stays as it is.
func (c *change) keep(why string) { c.after, c.note = c.before, why }

// tidy removes what does not express the intent of a user: fields that the API server maintains,
// the status, and our marks, which follow from who delivers the object.
func tidy(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	object = object.DeepCopy()
	removeMaintained(object)
	removeKey(object, "labels", v1alpha1.OwnerHashLabel)
	removeKey(object, "annotations", v1alpha1.OwnerAnnotation)
	removeKey(object, "annotations", v1alpha1.ResourceUIDAnnotation)
	return object
}

// removeKey removes a key from a map in the metadata, and the map if it becomes empty.
func removeKey(object *unstructured.Unstructured, field, key string) {
	unstructured.RemoveNestedField(object.Object, "metadata", field, key)
	if left, found, err := unstructured.NestedMap(object.Object, "metadata", field); found && err == nil && len(left) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
}

// sortChanges sorts changes into an order that does not depend on who answered first.
func sortChanges(changes []change) {
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(
			cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.id.Namespace, b.id.Namespace),
			cmp.Compare(a.id.Kind, b.id.Kind), cmp.Compare(a.id.Group, b.id.Group), cmp.Compare(a.id.Name, b.id.Name),
		)
	})
}
