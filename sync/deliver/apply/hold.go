package apply

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/manifest"
)

// ReasonHoldUnknown: the object carries the mark of an ApplicationRollback, which could not be read.
// It stays as it is until that is known.
const ReasonHoldUnknown = "HoldUnknown"

// heldBack reports whether an item is left as it is because an ApplicationRollback, or a snapshot, holds the object, or
// because that is not known. What was wanted when the hold was met is remembered in it.hold: once
// something else is wanted, the object is applied again, unless the holder is still at work on it.
func (r *run) heldBack(ctx context.Context, it *item) bool {
	if it.annotation(v1alpha1.HoldAnnotation) == v1alpha1.HoldDisabled {
		return false
	}
	prior, known := r.held[it.id.Key()]
	by := it.sight.heldBy()
	if it.sight.live == nil && known && prior.Holds() {
		by = types.NamespacedName{Namespace: prior.Namespace, Name: prior.Rollback} // which may have deleted it, to create it again
	}
	holder, entry, err := r.holders.Holding(ctx, by, referenceTo(it.id))
	if err != nil {
		if known {
			it.hold = &prior
		}
		r.holdUnknown(it, by, err)
		return true
	}
	if entry == nil {
		return false
	}
	if !known || prior.RollbackUID != holder.UID {
		prior = v1alpha1.Hold{
			ObjectReference: entry.ObjectReference, Rollback: holder.Name, RollbackUID: holder.UID,
			Since: metav1.Now().Rfc3339Copy(), Wanted: wantedOf(it.id, it.wantedBefore(), holder.UID),
		}
	}
	it.hold = &prior
	if !holder.AtWork && prior.Holds() && prior.Wanted != wantedOf(it.id, it.desired, holder.UID) {
		prior.Wanted = ""
	}
	if holder.AtWork || prior.Holds() {
		r.watchHolder(by, holder)
		return true
	}
	return false
}

// holdUnknown records that it could not be found out whether a rollback holds an item.
func (r *run) holdUnknown(it *item, by types.NamespacedName, err error) {
	if failure := clusterFailure(err); failure != nil {
		r.fail(failure)
		return
	}
	message := fmt.Sprintf("left as it is: its annotation %s names %s, which could not be read: %s", v1alpha1.HeldByAnnotation, hold.Describe(by), rootCause(err))
	if apierrors.IsForbidden(err) {
		message += "; grant get on applicationrollbacks and applicationsnapshots of apps.waybill.dev"
	}
	it.refuse(ReasonHoldUnknown, message)
}

// wantedBefore identifies what was wanted of an item before this run; if that is not known, it is what
// is wanted now.
func (it *item) wantedBefore() digest {
	if own := it.sight.own; own != nil && own.desired != (digest{}) {
		return own.desired
	}
	return it.desired
}

// leaveHeld takes a held object to be right as it is, so that only further changes are noticed.
func (r *run) leaveHeld(it *item) {
	if it.hold == nil || it.problem != nil {
		return // it is not known: the cluster as a whole failed, or the problem says why
	}
	seen := it.sight.live
	left := &record{holder: r.holder, desired: it.desired, isHeld: true}
	if own := it.sight.own; own != nil && it.hold.Holds() {
		left.desired = own.desired
	}
	if seen != nil {
		left.uid, left.fields, left.heldBy = seen.uid, seen.fields, seen.heldBy
	}
	it.applied = left
	it.kind.leaveAs(it.name(), seen, left)
}

// leaveAs records that an object which looked like seen is left as it is. It notifies the holder if the
// object has been changed since.
func (k *kind) leaveAs(name types.NamespacedName, seen *live, left *record) {
	k.mu.Lock()
	o := k.object(name)
	o.record = left
	changed := k.covered(name.Namespace) && !seen.alike(o.live)
	k.mu.Unlock()
	if changed {
		k.applier.tell([]*holder{left.holder})
	}
}

// heldBy returns the annotation of an object that names its holder, if that could be: a rollback of its
// own namespace.
func heldBy(object metav1.Object) string {
	value := object.GetAnnotations()[v1alpha1.HeldByAnnotation]
	if value == "" || hold.Parse(value).Namespace != object.GetNamespace() || len(value) > maxHeldBy {
		return ""
	}
	return value
}

// maxHeldBy is the length of the longest name of an object, with its namespace.
const maxHeldBy = 63 + 1 + len("snapshot:") + 253

// heldBy returns the rollback that the live object says it is held by.
func (s sight) heldBy() types.NamespacedName {
	if s.live == nil {
		return types.NamespacedName{}
	}
	return hold.Parse(s.live.heldBy)
}

// heldBy returns the rollback that an object says it is held by.
func (k *kind) heldBy(name types.NamespacedName) types.NamespacedName {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.objects[name]; o != nil && o.live != nil {
		return hold.Parse(o.live.heldBy)
	}
	return types.NamespacedName{}
}

// holds returns what is known of holds after the run: of what is no longer wanted, nothing.
func (r *run) holds() []v1alpha1.Hold {
	var all []v1alpha1.Hold
	for _, it := range r.items {
		switch prior, known := r.held[it.id.Key()]; {
		case it.hold != nil:
			all = append(all, *it.hold)
		case known && (it.undone() || it.kind == nil || it.sight.heldBy().Name == prior.Rollback):
			all = append(all, prior)
		}
	}
	for _, rm := range r.removals {
		if rm.hold != nil {
			all = append(all, *rm.hold)
		}
	}
	return hold.Sorted(all)
}

// awaitsRollback reports whether an object that is no longer wanted stays for now, because a rollback is
// at work on it.
func (r *run) awaitsRollback(ctx context.Context, rm *removal) bool {
	if len(r.items) == 0 { // the owner itself goes
		return false
	}
	by := rm.sight.heldBy()
	holder, entry, err := r.holders.Holding(ctx, by, referenceTo(rm.id))
	if err != nil || entry == nil || !holder.AtWork {
		return false
	}
	r.awaitRemoval(rm)
	r.watchHolder(by, holder)
	rm.hold = &v1alpha1.Hold{ObjectReference: entry.ObjectReference, Rollback: holder.Name, RollbackUID: holder.UID, Since: metav1.Now().Rfc3339Copy()}
	return true
}

func referenceTo(id manifest.ID) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
}

// stretch is how often what is wanted of a Secret is hashed: a user who may read the status that has
// the hash, but not the Secret, must not be able to find its content by trial.
const stretch = 100_000

// wantedOf returns what identifies what is wanted of an object, in a form that may be kept in a status.
func wantedOf(id manifest.ID, desired digest, salt types.UID) string {
	if id.Group != "" || id.Kind != "Secret" {
		return hex.EncodeToString(desired[:])
	}
	key, err := pbkdf2.Key(sha256.New, string(desired[:]), []byte(salt), stretch, len(desired))
	if err != nil {
		return hex.EncodeToString(make([]byte, len(desired)))
	}
	return hex.EncodeToString(key)
}
