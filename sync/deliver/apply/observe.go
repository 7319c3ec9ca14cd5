package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// Observation is what is known of an owner's objects without any request.
type Observation struct {
	// Settled: the last Apply did all there was to do, and nothing of it or of what
	// is watched has been edited or deleted since, and every stray that it named is still there.
	// Another Apply would do nothing.
	Settled bool
	// Drifted are objects that are no longer as they were applied, or as they were when Watch was
	// called.
	Drifted []manifest.ID
	// HeldBy is the ApplicationRollback that one of these says it is held by. Any client that may
	// edit it may have written that.
	HeldBy types.NamespacedName
	// Unwatched are kinds, each in a namespace, of which there are objects and no watch shows changes:
	// Apply did not wait for one, or it was lost, because a right was taken away or the kind is not
	// served any more. Only another Apply or Watch begins one that may be had instead.
	Unwatched []manifest.ID
	// Health of the objects.
	Health health.Summary
	// Statuses has, by ID.Key, the statuses of the objects whose owner Options.Status names,
	// including those that are being deleted. An object that no watch has shown yet, or whose kind
	// has no status, is left out; one that is gone, or belongs to another owner, is included
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
	o := Observation{Settled: !h.moved.Load()}
	var items []health.Item
	for _, v := range []*view{applied, watched} {
		if v == nil {
			continue
		}
		o.Settled = o.Settled && v.settled
		for _, key := range v.objects {
			item, condition := key.kind.observe(key.name, h)
			items = append(items, item)
			switch condition {
			case drifted:
				o.Drifted = append(o.Drifted, item.ID)
				if by := key.kind.heldBy(key.name); by.Name != "" {
					o.HeldBy = by
				}
			case unwatched:
				o.addUnwatched(key)
			}
			o.addStatus(key, h)
			missed := condition == unseen || condition == unwatched
			o.Settled = o.Settled && (condition == asApplied || missed && v == watched)
		}
	}
	o.Health = health.Summarize(items)
	if applied != nil {
		for _, key := range applied.leaving {
			o.addStatus(key, h)
		}
		for _, key := range applied.strays {
			o.Settled = o.Settled && key.kind.strays(key.name, h.mark)
		}
	}
	return o, len(items) > 0
}

// HeldBy returns who the objects of the last Apply and the last Watch say they are held by, as far as watches show
// it. Any client that may edit one may have written that.
func (a *Applier) HeldBy(owner Owner) []types.NamespacedName {
	a.mu.Lock()
	h := a.holders[owner]
	a.mu.Unlock()
	if h == nil {
		return nil
	}
	var found []types.NamespacedName
	for _, v := range []*view{h.applied.Load(), h.watched.Load()} {
		if v == nil {
			continue
		}
		for _, key := range v.objects {
			if by := key.kind.heldBy(key.name); by.Name != "" && !slices.Contains(found, by) {
				found = append(found, by)
			}
		}
	}
	return found
}

// addUnwatched adds the kind and the namespace of an object.
func (o *Observation) addUnwatched(key recordKey) {
	if scope := key.kind.scopeID(key.name.Namespace); !slices.Contains(o.Unwatched, scope) {
		o.Unwatched = append(o.Unwatched, scope)
	}
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

// UntouchedAt returns the resourceVersion at which a watch shows an object that Helm wrote for an owner, as
// Watched.Written says, if none of the fields that Helm set has changed since; empty if that is not known. What others
// have added does not count, nor does the status. A caller that writes the object on that ground has to make sure that
// it still has this version.
func (a *Applier) UntouchedAt(owner Owner, id manifest.ID) string {
	a.mu.Lock()
	h, k := a.holders[owner], a.kinds[id.GroupVersionKind()]
	a.mu.Unlock()
	if h == nil || k == nil {
		return ""
	}
	return k.untouchedAt(k.key(id).name, h)
}

func (k *kind) untouchedAt(name types.NamespacedName, h *holder) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.objects[name]
	if o == nil || o.record == nil || o.record.holder != h || !k.covered(name.Namespace) || !o.record.untouched(o.live) {
		return ""
	}
	return o.live.version
}

// condition is how a live object compares with what was applied.
type condition int

const (
	// asApplied: it has not changed.
	asApplied condition = iota
	// drifted: it has changed.
	drifted
	// unseen: it was never applied, was not shown since Helm wrote it, or its watch is interrupted.
	unseen
	// unwatched: no watch will show it.
	unwatched
)
