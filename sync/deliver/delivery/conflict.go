package delivery

import (
	"slices"
	"time"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// conflicts has the objects of a cluster that were corrected not long ago because another field manager
// had changed or deleted them.
type conflicts map[manifest.ID]*reconcile.DriftConflict

// note counts what a job has corrected, and drops the objects whose conflict is over.
func (c conflicts) note(changes []apply.Change, now time.Time, backoff func(int) time.Duration) {
	for id, conflict := range c {
		if !now.Before(conflict.Over()) {
			delete(c, id)
		}
	}
	for _, change := range changes {
		if change.Action != apply.Corrected && !change.Again {
			continue
		}
		id := change.ID.Key()
		if c[id] == nil {
			c[id] = &reconcile.DriftConflict{}
		}
		c[id].Corrected(now, backoff)
	}
}

// due returns when to correct what has changed: as soon as that is due for one of the objects.
// Zero means at once.
func (c conflicts) due(drift []manifest.ID) time.Time {
	var first time.Time
	for _, id := range drift {
		conflict := c[id.Key()]
		if conflict == nil {
			return time.Time{}
		}
		if due := conflict.Due(); first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return first
}

// going returns the names of the objects that are contested, sorted, and when the first of these
// conflicts is over if nothing is corrected until then.
func (c conflicts) going(now time.Time) (names []string, over time.Time) {
	for id, conflict := range c {
		if !conflict.Going(now) {
			continue
		}
		names = append(names, id.String())
		if end := conflict.Over(); over.IsZero() || end.Before(over) {
			over = end
		}
	}
	slices.Sort(names)
	return names, over
}
