package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// Preview predicts what Apply decides about objects as an API server shows them, for those who write nothing.
type Preview struct {
	// Owner delivers the objects. Without a HubID, the owner of that name in any hub counts as this one.
	Owner Owner
	// Adopt and Inventory are those of the Request.
	Adopt     bool
	Inventory []manifest.ID
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
