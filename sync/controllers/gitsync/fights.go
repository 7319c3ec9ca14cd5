package gitsync

import (
	"fmt"
	"slices"
	"time"

	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// fights has the objects of a cluster that were put right not long ago because somebody else had
// changed or deleted them.
type fights map[manifest.ID]*reconcile.Fight

// note counts what a delivery has put right, and drops the objects that have been left in peace.
func (f fights) note(changes []apply.Change, now time.Time, backoff func(int) time.Duration) {
	for id, fight := range f {
		if !now.Before(fight.Over()) {
			delete(f, id)
		}
	}
	for _, c := range changes {
		if c.Action != apply.Corrected && !c.Again {
			continue
		}
		id := c.ID.Key()
		if f[id] == nil {
			f[id] = &reconcile.Fight{}
		}
		f[id].Corrected(now, backoff)
	}
}

// due returns when to put right what has changed: as soon as that is due for one of the objects.
// Zero means at once.
func (f fights) due(drifted []manifest.ID) time.Time {
	var first time.Time
	for _, id := range drifted {
		fight := f[id.Key()]
		if fight == nil {
			return time.Time{}
		}
		if due := fight.Due(); first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return first
}

// going returns the names of the objects that are fought for, sorted, and when the first of these
// fights is over if nothing is corrected until then.
func (f fights) going(now time.Time) (names []string, over time.Time) {
	for id, fight := range f {
		if !fight.Going(now) {
			continue
		}
		names = append(names, id.String())
		if end := fight.Over(); over.IsZero() || end.Before(over) {
			over = end
		}
	}
	slices.Sort(names)
	return names, over
}

// isDriftDue reports whether something that others have changed, or that a cluster waited for, is to
// be put right now. What is fought for waits for its turn, unless another object has changed, too.
func (s *scope) isDriftDue(t *target) bool {
	t.driftDue = time.Time{}
	seen, known := t.applier.Observe(s.apply)
	if known && seen.Settled {
		return false
	}
	if due := t.fights.due(t.accepted(seen.Drifted)); due.After(s.now) {
		t.driftDue = due
		return false
	}
	return true
}

// accepted leaves out the objects whose correction was refused: they are tried again with all else
// that failed.
func (t *target) accepted(drifted []manifest.ID) []manifest.ID {
	return slices.DeleteFunc(slices.Clone(drifted), func(id manifest.ID) bool {
		return slices.ContainsFunc(t.result.Problems, func(p manifest.Problem) bool { return p.ID.Key() == id.Key() })
	})
}

// fought says, to be appended to a message, which objects are fought for.
func (s *scope) fought() string {
	var all []string
	for _, t := range s.targets() {
		names, _ := t.fights.going(s.now)
		for _, name := range names {
			all = append(all, t.prefix()+name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s%s: another field manager keeps changing or deleting it; corrections back off: "+
		"metadata.managedFields names the manager of a changed field; have only one of the two manage it", all[0], excerpt.AndMore(len(all)-1))
}
