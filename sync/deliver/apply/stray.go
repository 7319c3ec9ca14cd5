package apply

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/manifest"
)

// survey looks for strays: objects with the mark of the owner that are neither wanted nor in the
// inventory, because that was restored from a backup which is older than they are. They are looked for
// once, among what the watches show by then, and from then on only those that were found are checked.
// They are named and not deleted: any user who may write an object can put a mark on it, and would
// have it deleted with the rights of Waybill.
func (r *run) survey() {
	complete := !r.failed() && len(r.request.Unread) == 0 && len(usable(r.items)) == len(r.items)
	switch {
	case !r.request.Survey:
		return
	case r.holder.surveyed:
	case complete:
		r.holder.surveyed = true
		r.holder.strays = r.marked()
	default:
		return // what cannot be read or applied is wanted all the same
	}
	wanted := make(map[manifest.ID]bool, len(r.items))
	for _, id := range r.wanted() {
		wanted[id.Key()] = true
	}
	r.holder.strays = slices.DeleteFunc(r.holder.strays, func(key recordKey) bool {
		id := key.kind.id(key.name)
		if wanted[id.Key()] || r.delivered[id.Key()] || !key.kind.awaitStray(key.name, r.holder) {
			return true
		}
		r.needed.add(key.kind, key.name.Namespace)
		r.warnings = append(r.warnings, manifest.Problem{ID: id, Reason: ReasonStray, Message: fmt.Sprintf(
			"it carries the mark of this %s, and is in neither its source nor its inventory: delete it if it is not needed", r.request.Owner.Kind)})
		return false
	})
}

// marked returns the objects of the kinds that are in use that carry the mark of the owner. Namespaces
// and definitions are left out where what was kept keeps them.
func (r *run) marked() []recordKey {
	var found []recordKey
	seen, keeping := make(map[manifest.ID]bool), make(map[manifest.ID]bool)
	for k := range r.holder.kinds {
		strays, kept := k.marked(r.holder.mark)
		for _, name := range strays {
			if id := k.id(name).Key(); !seen[id] {
				seen[id] = true
				found = append(found, recordKey{k, name})
			}
		}
		for _, name := range kept {
			keeping[manifest.ID{Kind: namespaceKind.Kind, Name: name.Namespace}] = true
			keeping[manifest.ID{Group: crdKind.Group, Kind: crdKind.Kind, Name: k.gvr.GroupResource().String()}] = true
		}
	}
	return slices.DeleteFunc(found, func(key recordKey) bool { return keeping[key.kind.id(key.name).Key()] })
}

// marked returns the objects with a mark that we wrote: strays, and those that the prune annotation
// keeps.
func (k *kind) marked(mark string) (strays, kept []types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, o := range k.objects {
		switch {
		case !o.marked(mark):
		case o.live.keep:
			kept = append(kept, name)
		default:
			strays = append(strays, name)
		}
	}
	return strays, kept
}

// awaitStray registers a holder to be notified when a stray is gone, or belongs to another owner. It
// returns false if that is so already.
func (k *kind) awaitStray(name types.NamespacedName, h *holder) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.objects[name]
	if o == nil || !o.marked(h.mark) {
		return false
	}
	k.waitFor(name, o, h)
	return true
}

// strays reports whether an object that was named as a stray is still there.
func (k *kind) strays(name types.NamespacedName, mark string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.objects[name]
	return o != nil && o.marked(mark)
}

// marked reports whether an object that is not being deleted has a mark, and fields that our applies
// set: controllers copy annotations and labels to other objects.
func (o *object) marked(mark string) bool {
	return o.live != nil && o.live.owner == mark && !o.live.deleting && o.live.fields != digest{}
}
