package apply

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// MaxStatus is the size in bytes of the largest status that is kept, as JSON.
const MaxStatus = 64 << 10

// Status is the field status of a live object, as its controller wrote it.
type Status struct {
	// JSON of the field; nil if the object has none, or one that is too large.
	JSON []byte
	// TooLarge: it is larger than MaxStatus.
	TooLarge bool
}

// wantsStatus reports whether the status of an owner's objects of a kind is to be kept.
func (a *Applier) wantsStatus(owner Owner, k *kind) bool {
	return a.status != nil && health.ReportsStatus(k.gvk.GroupKind()) && a.status(owner)
}

// reported returns the status of an object with an owner mark; nil if it is not to be kept.
func reported(object metav1.Object, mark string, keep func(Owner) bool) *Status {
	u, whole := object.(*unstructured.Unstructured)
	if keep == nil || !whole {
		return nil
	}
	if owner, ok := parseOwner(mark); !ok || !keep(owner) {
		return nil
	}
	value := u.Object["status"]
	if value == nil {
		return &Status{}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return &Status{}
	}
	if len(text) > MaxStatus {
		return &Status{TooLarge: true}
	}
	return &Status{JSON: text}
}

// statusDiffers reports whether the status of a live object has changed. A status that is no longer
// known does not count as changed.
func (l *live) statusDiffers(other *live) bool {
	if other == nil || other.reported == nil {
		return false
	}
	if l == nil || l.reported == nil {
		return true
	}
	return l.reported.TooLarge != other.reported.TooLarge || !bytes.Equal(l.reported.JSON, other.reported.JSON)
}

// statusOf returns the status of an object if the object is the holder's, or nil if it is not
// known. For an object that is gone, or belongs to another owner by now, it is known that there is
// none.
func (k *kind) statusOf(name types.NamespacedName, h *holder) *Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	o, covered := k.objects[name], k.covered(name.Namespace)
	switch {
	case o != nil && !covered && o.answered != nil && o.record != nil && o.record.holder == h:
		return o.answered
	case o != nil && o.live != nil && o.live.owner == h.mark:
		return o.live.reported
	case covered && k.applier.wantsStatus(h.owner, k):
		return &Status{}
	}
	return nil
}

// addStatus adds the status of an object, if it is known.
func (o *Observation) addStatus(key recordKey, h *holder) {
	status := key.kind.statusOf(key.name, h)
	if status == nil {
		return
	}
	if o.Statuses == nil {
		o.Statuses = make(map[manifest.ID]Status)
	}
	o.Statuses[key.kind.id(key.name).Key()] = *status
}
