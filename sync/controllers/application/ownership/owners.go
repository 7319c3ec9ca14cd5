package ownership

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/membership"
)

// Owners holds the Applications as owners. The zero value is not usable; see NewOwners. It is safe
// for concurrent use, but only one goroutine at a time may set or delete the Application of a name.
type Owners struct {
	// Index holds the Applications by what they select.
	Index *membership.Index

	known keyed.Map[types.UID, owner]
}

// owner is an Application as an owner.
type owner struct {
	app *membership.Application
	// recorded are the kinds whose objects may be given a reference to it.
	recorded sets.Set[schema.GroupKind]
}

// NewOwners returns Owners without an Application.
func NewOwners() *Owners { return &Owners{Index: &membership.Index{}} }

// Set adds an Application, or replaces the one with its name.
func (o *Owners) Set(app *membership.Application) {
	if old := o.Index.Get(app.Key); old != nil && old.UID != app.UID {
		o.known.Drop(old.UID)
	}
	o.known.Change(app.UID, func(known owner) (owner, bool) {
		known.app = app
		return known, true
	})
	o.Index.Set(app)
}

// Delete removes the Application with that name.
func (o *Owners) Delete(key types.NamespacedName) {
	if old := o.Index.Get(key); old != nil {
		o.known.Drop(old.UID)
		o.Index.Delete(key)
	}
}

// Record sets the kinds whose objects may be given a reference to an Application. The Application
// must already have a finalizer, and its status must name these kinds, so that even a process that
// has just started finds every reference again. Record reports whether there are kinds that were
// not recorded before.
func (o *Owners) Record(uid types.UID, kinds sets.Set[schema.GroupKind]) (more bool) {
	o.known.Change(uid, func(known owner) (owner, bool) {
		if known.app == nil {
			return known, false
		}
		more = !known.recorded.IsSuperset(kinds)
		known.recorded = kinds
		return known, true
	})
	return more
}

// byUID returns the Application with that UID, or nil if there is none.
func (o *Owners) byUID(uid types.UID) *membership.Application { return o.known.Get(uid).app }

// gives reports whether an Application may be made the owner of objects of a kind.
func (o *Owners) gives(app *membership.Application, kind schema.GroupKind) bool {
	return o.known.Get(app.UID).recorded.Has(kind)
}
