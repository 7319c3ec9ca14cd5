package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/health"
)

// object is what an Applier knows of one object of a kind. Guarded by the lock of
// the kind.
type object struct {
	// live is the object as a watch, or the answer to our last write, showed it; nil if there is
	// none that carries our label.
	live *live
	// record is what we applied last, or what Helm wrote; nil if that is nothing.
	record *record
	// answered is the status in the answer to our last write; nil if a watch shows it.
	answered *Status
	// writes are those that are under way. While there are any, changes are not
	// compared with record: they may well be ours.
	writes []write
	// gone is the resource version at which the object vanished during a write, so
	// that the answer to that write is not mistaken for something newer.
	gone string
	// waiting are the holders to notify when the object is gone, or belongs to another owner.
	waiting []*holder
}

// record is an object as we applied it. It is not changed once it is created.
type record struct {
	holder *holder
	// desired identifies the manifest.
	desired digest
	// ignored identifies the fields of it that were ignored; empty for none.
	ignored string
	// uid and fields are what the API server answered.
	uid    types.UID
	fields digest
	// stamp is that of the object when it was written, or taken to be right.
	stamp digest
	// heldBy is that of the object that was decided on: another value means that there is something new
	// to decide. isHeld: the object was not applied, but left as it was.
	heldBy string
	isHeld bool
	// awaits is the resource version at which Helm wrote the object, until a watch has shown it at
	// that version or a later one: what it shows of earlier ones is not compared.
	awaits string
	// answered: the record is of what the API server answered when Helm wrote the object. What Watch takes
	// to be right may have been edited before.
	answered bool
}

// awaiting reports whether the watch is still behind what was written.
func (r *record) awaiting(l *live) bool {
	return r.awaits != "" && (l == nil || watch.Older(l.version, r.awaits))
}

// shown returns the record once a watch has shown the object as it was written, or later.
func (r *record) shown() *record {
	return &record{
		holder: r.holder, desired: r.desired, uid: r.uid, fields: r.fields, stamp: r.stamp, heldBy: r.heldBy, answered: r.answered,
	}
}

// untouched reports whether none of our fields was set since Helm wrote the object, not even by us, and no
// rollback holds it.
func (r *record) untouched(l *live) bool {
	return r.answered && !r.awaiting(l) && r.matches(l) && r.stamp == l.stamp && l.heldBy == ""
}

// voided returns what is left of the record once it does not say any more what is right: of what
// Apply wrote, nothing, because Apply itself knows what to write; of what Helm wrote, that it is not
// right.
func (r *record) voided() *record {
	if r == nil || r.desired != (digest{}) {
		return nil
	}
	return &record{holder: r.holder}
}

// matches reports whether a live object is what was applied.
func (r *record) matches(l *live) bool {
	return l != nil && l.uid == r.uid && l.fields == r.fields && l.owner == r.holder.mark && l.heldBy == r.heldBy && !l.deleting
}

// show records a new state of the live object and returns the holders that this concerns: the
// owner, if the object is no longer what was applied or its health changed, and those that waited
// for it to go. reported means that its status has changed, which concerns the owner that it is
// marked with.
func (o *object) show(now *live) (concerned []*holder, reported bool) {
	before := o.live
	o.live, o.answered = now, nil
	if now == nil || before != nil && (before.uid != now.uid || before.owner != now.owner) {
		concerned, o.waiting = o.waiting, nil
	}
	reported = before.statusDiffers(now)
	if o.record == nil || len(o.writes) > 0 {
		return concerned, reported
	}
	if o.record.awaiting(now) {
		return concerned, reported
	}
	arrived := o.record.awaits != ""
	if arrived {
		o.record = o.record.shown()
	}
	drifted := !o.record.matches(now) && (arrived || !before.alike(now))
	if drifted || o.record.holder.health.Load() && (arrived || before.healthDiffers(now)) {
		concerned = append(concerned, o.record.holder)
	}
	return concerned, reported
}

// alike reports whether two states of a live object are the same as far as drift is concerned.
func (l *live) alike(other *live) bool {
	if l == nil || other == nil {
		return l == other
	}
	return l.uid == other.uid && l.fields == other.fields && l.owner == other.owner && l.heldBy == other.heldBy && l.deleting == other.deleting
}

// healthDiffers reports whether the health changed in a way that the owner is notified of. The
// message of an object that makes progress changes all the time, so only the message of a failure
// counts.
func (l *live) healthDiffers(other *live) bool {
	if l == nil || other == nil {
		return l != other
	}
	return l.status != other.status || l.status == health.Failed && l.message != other.message
}

// wait adds a holder to those that wait.
func (o *object) wait(h *holder) {
	if !slices.Contains(o.waiting, h) {
		o.waiting = append(o.waiting, h)
	}
}

// idle reports whether nothing is known of the object.
func (o *object) idle() bool {
	return o.live == nil && o.record == nil && len(o.writes) == 0 && len(o.waiting) == 0
}

// outdatedBy reports whether the answer to a write is newer than what a watch has shown.
func (o *object) outdatedBy(applied *live) bool {
	if o.gone != "" && !watch.Older(o.gone, applied.version) {
		return false
	}
	return o.live == nil || watch.Older(o.live.version, applied.version)
}

// health returns the health of the live object, as a holder sees it.
func (o *object) health(h *holder) (health.Status, string) {
	switch {
	case o.live == nil:
		return health.Of(nil)
	case o.live.owner != h.mark:
		return health.Unknown, h.owner.describe(o.live, nil)
	case o.live.status != "":
		return o.live.status, o.live.message
	default:
		return health.OfMetadata(o.live.deleting)
	}
}
