package delivery

import (
	"slices"
	"time"

	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// conflicts has the objects of a cluster that were put right not long ago because somebody else had
// changed or deleted them.
type conflicts map[manifest.ID]*reconcile.Fight

// note counts what a job has put right, and drops the objects that have been left in peace.
func (c conflicts) note(changes []apply.Change, now time.Time, backoff func(int) time.Duration) {
	for id, fight := range c {
		if !now.Before(fight.Over()) {
			delete(c, id)
		}
	}
	for _, change := range changes {
		if change.Action != apply.Corrected && !change.Again {
			continue
		}
		id := change.ID.Key()
		if c[id] == nil {
			c[id] = &reconcile.Fight{}
		}
		c[id].Corrected(now, backoff)
	}
}

// due returns when to put right what has changed: as soon as that is due for one of the objects.
// Zero means at once.
func (c conflicts) due(drift []manifest.ID) time.Time {
	var first time.Time
	for _, id := range drift {
		fight := c[id.Key()]
		if fight == nil {
			return time.Time{}
		}
		if due := fight.Due(); first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return first
}

// going returns the names of the objects that are contested, sorted, and when the first of these
// conflicts is over if nothing is corrected until then.
func (c conflicts) going(now time.Time) (names []string, over time.Time) {
	for id, fight := range c {
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
