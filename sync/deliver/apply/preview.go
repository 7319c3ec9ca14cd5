package apply

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// Preview predicts what Apply decides about objects as an API server shows them, for those who write nothing.
type Preview struct {
	// Owner delivers the objects. Without a HubID, the owner of that name in any hub counts as this one.
	Owner Owner
	// Adopt, Inventory and Unread are those of the Request.
	Adopt     bool
	Inventory []manifest.ID
	Unread    []manifest.Problem
}

// Attempt is what would become of an object that is wanted, or is no longer.
type Attempt struct {
	ID manifest.ID
	// Live is the object in the cluster; nil if there is none, or it is not known.
	Live *unstructured.Unstructured
	// Refused: it could not be applied. Waits: its kind or namespace does not exist.
	Refused, Waits bool
}

// Refusal returns the message of the problem with which Apply leaves a live object as it is, because it is
// not the owner's to write; empty if it is, or if live is nil.
func (p Preview) Refusal(live, wanted *unstructured.Unstructured, id manifest.ID) string {
	if live == nil {
		return ""
	}
	it := &item{adopt: adoptionOf(annotationOf(wanted, v1alpha1.AdoptAnnotation), p.Adopt)}
	it.sight.found(live)
	owner := p.owner(live)
	if decide(evidence{live: it.sight.live, mark: owner.String(), delivered: p.delivered(id), adopt: it.adopt}) != leave {
		return ""
	}
	return it.foreign(owner)
}

// Released returns why Apply leaves in the cluster, for good, a live object that is no longer wanted; empty if it
// deletes it.
func (p Preview) Released(live *unstructured.Unstructured) string {
	seen := &sight{}
	seen.found(live)
	_, marked := OwnerOf(live)
	switch {
	case fateOf(seen.live, p.owner(live).String(), false) != released:
		return ""
	case !marked:
		return "does not say any more that it is Waybill's: it is released"
	case !p.Owns(live):
		return "belongs to another owner by now"
	default:
		return "its annotation " + v1alpha1.PruneAnnotation + " keeps it"
	}
}

// HeldBack returns, by ID, why Apply leaves objects in the cluster for now that are no longer wanted, given what
// would become of those that are: it keeps what may still be wanted, is still used, or would take with it
// what stays.
func (p Preview) HeldBack(stale, wanted []Attempt) map[manifest.ID]string {
	in, why := doubtsOf(p.Unread), map[manifest.ID]string{}
	var stuck []Attempt
	for _, a := range wanted {
		if a.Waits {
			in.await(manifest.Problem{ID: a.ID})
		}
		if (a.Refused || a.Waits) && p.delivered(a.ID) {
			stuck = append(stuck, a)
		}
	}
	for _, a := range stale {
		one := in.about(a.ID)
		if one == nil && len(in.unidentified) > 0 {
			one = &in.unidentified[0]
		}
		if one != nil {
			why[a.ID], stuck = one.place()+", "+one.why, append(stuck, a)
		}
	}
	p.holdUsed(stale, stuck, why)
	var stay []manifest.ID
	for _, a := range stuck {
		stay = append(stay, a.ID)
	}
	on := foundationsOf(append(stay, slices.Collect(maps.Keys(why))...))
	for _, a := range stale {
		if stays, found := on.under(a.ID); found && why[a.ID] == "" {
			why[a.ID] = stays.String() + " stays for now, and would be deleted with it"
		}
	}
	return why
}

// holdUsed adds the objects that others may still use which stay as they are.
func (p Preview) holdUsed(stale, stuck []Attempt, why map[manifest.ID]string) {
	for _, user := range stuck {
		for _, a := range stale {
			if why[a.ID] == "" && mayUse(user, a.ID) {
				why[a.ID] = user.ID.String() + ", which could not be applied, may still use it"
			}
		}
	}
}

// mayUse reports whether the content of a live object may name another one.
func mayUse(user Attempt, used manifest.ID) bool {
	if user.Live == nil || !isReferred(used) || !refers(user.ID) || user.ID.Namespace != used.Namespace {
		return false
	}
	found := make(map[string]bool)
	find(user.Live, map[string]bool{used.Name: true}, found)
	return found[used.Name]
}

// Owns reports whether a live object carries the mark of the owner.
func (p Preview) Owns(live *unstructured.Unstructured) bool {
	return live != nil && live.GetAnnotations()[v1alpha1.OwnerAnnotation] == p.owner(live).String()
}

// owner returns the owner, of the hub of a live object if its own is not known.
func (p Preview) owner(live *unstructured.Unstructured) Owner {
	owner := p.Owner
	if owner.HubID == "" {
		theirs, _ := OwnerOf(live)
		owner.HubID = theirs.HubID
	}
	return owner
}

func (p Preview) delivered(id manifest.ID) bool {
	for _, known := range p.Inventory {
		if known.Key() == id.Key() {
			return true
		}
	}
	return false
}

// annotationOf returns an annotation of an object; nil if it has none of that key.
func annotationOf(object *unstructured.Unstructured, key string) any {
	if value, set := object.GetAnnotations()[key]; set {
		return value
	}
	return nil
}
