package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/health"
)

// object is what an Applier knows of one object of a kind. Guarded by the lock of
// the kind.
type object struct {
	// live is the object as a watch, or the answer to our last write, showed it;
	// nil where there is none that carries our label.
	live *live
	// record is what we applied last; nil where we did not.
	record *record
	// answered is the status in the answer to our last write, nil where a watch tells.
	answered *Status
	// writes are those that are under way. While there are any, changes are not
	// compared with record: they may well be ours.
	writes []write
	// gone is the resource version at which the object vanished during a write, so
	// that the answer to that write is not mistaken for something newer.
	gone string
	// waiting are to be told when the object is gone, or belongs to somebody else.
	waiting []*holder
}

// record is an object as we applied it. It is not changed once it is made.
type record struct {
	holder *holder
	// desired identifies the manifest.
	desired digest
	// uid and fields are what the API server answered.
	uid    types.UID
	fields digest
}

// matches tells whether a live object is what was applied.
func (r *record) matches(l *live) bool {
	return l != nil && l.uid == r.uid && l.fields == r.fields && l.owner == r.holder.mark && !l.deleting
}

// show takes in what became of the live object and returns whom it concerns: the
// owner, where the object is not what was applied any more or its health changed, and
// those who waited for it to go. Where reported is set its status is another one, which
// concerns whoever it is marked as owned by.
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
	drifted := !o.record.matches(now) && !before.alike(now)
	if drifted || o.record.holder.health.Load() && before.healthDiffers(now) {
		concerned = append(concerned, o.record.holder)
	}
	return concerned, reported
}

// alike tells whether two states of a live object are one for drift.
func (l *live) alike(other *live) bool {
	if l == nil || other == nil {
		return l == other
	}
	return l.uid == other.uid && l.fields == other.fields && l.owner == other.owner && l.deleting == other.deleting
}

// healthDiffers tells whether the health changed in a way to tell the owner. What
// an object says while it makes progress changes all the time, so only the message
// of a failure counts.
func (l *live) healthDiffers(other *live) bool {
	if l == nil || other == nil {
		return l != other
	}
	return l.status != other.status || l.status == health.Failed && l.message != other.message
}

// wait adds a holder to those who wait.
func (o *object) wait(h *holder) {
	if !slices.Contains(o.waiting, h) {
		o.waiting = append(o.waiting, h)
	}
}

// idle tells whether nothing is known of the object.
func (o *object) idle() bool {
	return o.live == nil && o.record == nil && len(o.writes) == 0 && len(o.waiting) == 0
}
