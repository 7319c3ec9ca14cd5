package apply

import (
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// Observation is what is known of an owner's objects without any request.
type Observation struct {
	// Settled: the last Apply did all there was to do, and nothing of it or of what
	// is watched has been edited or deleted since. Another Apply would write nothing.
	Settled bool
	// Drifted are objects that are no longer as they were applied, or as they were when Watch was
	// called.
	Drifted []manifest.ID
	// Health of the objects.
	Health health.Summary
	// Statuses has, by ID.Key, the statuses of the objects whose owner Options.Status names,
	// including those that are being deleted. An object that no watch has shown yet, or whose kind
	// has no status, is left out; one that is gone, or belongs to somebody else, is included
	// without a status. If a kind may not be watched, it is the status at the last Apply.
	Statuses map[manifest.ID]Status
}

// Observe returns how the objects of the last Apply and the last Watch are. It is cheap, and it is
// the way to find out what a Notify was about: if Settled is set, it was about health alone. It
// returns false for an owner of which nothing is known, or nothing but objects that are being
// deleted.
func (a *Applier) Observe(owner Owner) (Observation, bool) {
	a.mu.Lock()
	h := a.holders[owner]
	a.mu.Unlock()
	if h == nil {
		return Observation{}, false
	}
	applied, watched := h.applied.Load(), h.watched.Load()
	if applied == nil && watched == nil {
		return Observation{}, false
	}
	o := Observation{Settled: true}
	var items []health.Item
	for _, v := range []*view{applied, watched} {
		if v == nil {
			continue
		}
		o.Settled = o.Settled && v.settled
		for _, key := range v.objects {
			item, condition := key.kind.observe(key.name, h)
			items = append(items, item)
			if condition == drifted {
				o.Drifted = append(o.Drifted, item.ID)
			}
			o.addStatus(key, h)
			o.Settled = o.Settled && (condition == asApplied || condition == unseen && v == watched)
		}
	}
	o.Health = health.Summarize(items)
	if applied != nil {
		for _, key := range applied.leaving {
			o.addStatus(key, h)
		}
	}
	return o, len(items) > 0
}

// Covers reports whether the objects of the kind of id are watched in its namespace: then a warning
// that they are not is out of date.
func (a *Applier) Covers(id manifest.ID) bool {
	a.mu.Lock()
	k := a.kinds[id.GroupVersionKind()]
	a.mu.Unlock()
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.covered(id.Namespace)
}

// condition is how a live object compares with what was applied.
type condition int

const (
	// asApplied: nobody has changed it.
	asApplied condition = iota
	// drifted: somebody has.
	drifted
	// unseen: it was never applied, cannot be watched, or was not shown since Helm wrote it.
	unseen
)
