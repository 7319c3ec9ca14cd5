package diff

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// action is what would happen to an object.
type action string

const (
	created  action = "created"
	changed  action = "changed"
	deleted  action = "deleted"
	refused  action = "refused"
	kept     action = "kept"
	noChange action = ""
	// recreated: deleted, and created again, because a field cannot be changed.
	recreated action = "recreated"
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
func (c change) action() action {
	switch {
	case c.refused:
		return refused
	case c.recreated:
		return recreated
	case c.note != "":
		return kept
	case c.before == nil && c.after == nil:
		return noChange
	case c.before == nil:
		return created
	case c.after == nil:
		return deleted
	case text(c.before) != text(c.after):
		return changed
	}
	return noChange
}

// keep says why an object stays as it is.
func (c *change) keep(why string) { c.after, c.note = c.before, why }

// tidy removes what does not express anybody's intent: fields that the API server maintains, the
// status, and our marks, which follow from who delivers the object.
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
