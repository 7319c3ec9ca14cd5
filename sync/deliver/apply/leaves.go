package apply

import (
	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// Leaves reports whether a delivery for an owner leaves an object as it is: it is held, and nothing else
// is wanted of it than when that was found. The object has the namespace that it is to have.
func Leaves(h v1alpha1.Hold, owner Owner, object manifest.Object) bool {
	if !h.Holds() {
		return false
	}
	it, err := newItem(object, Request{Owner: owner, DefaultNamespace: object.GetNamespace()})
	if err != nil {
		return false
	}
	it.place(&kind{namespaced: object.GetNamespace() != ""})
	return it.identify() == nil && h.Wanted == wantedOf(it.id, it.desired, h.RollbackUID)
}
