package ownership

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/sync/membership"
)

// Owners holds the Applications as owners. The zero value is not usable; see NewOwners. It is safe
// for concurrent use.
type Owners struct {
	// Index holds the Applications by what they select.
	Index *membership.Index

	mu sync.RWMutex
	// keys maps the UID of an Application to its name.
	keys map[types.UID]types.NamespacedName
	// recorded holds the kinds whose objects may be given a reference to an Application.
	recorded map[types.UID]sets.Set[schema.GroupKind]
}

// NewOwners returns Owners without an Application.
func NewOwners() *Owners {
	return &Owners{
		Index:    &membership.Index{},
		keys:     make(map[types.UID]types.NamespacedName),
		recorded: make(map[types.UID]sets.Set[schema.GroupKind]),
	}
}

// Set adds an Application, or replaces the one with its name.
func (o *Owners) Set(app *membership.Application) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old := o.Index.Get(app.Key); old != nil && old.UID != app.UID {
		o.forget(old.UID)
	}
	o.keys[app.UID] = app.Key
	o.Index.Set(app)
}

// Delete removes the Application with that name.
func (o *Owners) Delete(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old := o.Index.Get(key); old != nil {
		o.forget(old.UID)
		o.Index.Delete(key)
	}
}

func (o *Owners) forget(uid types.UID) {
	delete(o.keys, uid)
	delete(o.recorded, uid)
}

// Record sets the kinds whose objects may be given a reference to an Application. The Application
// must already have a finalizer, and its status must name these kinds, so that even a process that
// has just started finds every reference again. Record reports whether there are kinds that were
// not recorded before.
func (o *Owners) Record(uid types.UID, kinds sets.Set[schema.GroupKind]) (more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.keys[uid]; !known {
		return false
	}
	more = !o.recorded[uid].IsSuperset(kinds)
	o.recorded[uid] = kinds
	return more
}

// byUID returns the Application with that UID, or nil if there is none.
func (o *Owners) byUID(uid types.UID) *membership.Application {
	o.mu.RLock()
	defer o.mu.RUnlock()
	key, known := o.keys[uid]
	if !known {
		return nil
	}
	return o.Index.Get(key)
}

// gives reports whether an Application may be made the owner of objects of a kind.
func (o *Owners) gives(app *membership.Application, kind schema.GroupKind) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.recorded[app.UID].Has(kind)
}
