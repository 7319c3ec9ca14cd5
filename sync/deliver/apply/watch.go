package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// Watched names objects that Helm writes on behalf of an owner. They
// carry the owner's marks; their fields are managed by v1alpha1.HelmFieldManager.
type Watched struct {
	IDs []manifest.ID
	// Written has, of those of IDs that were just written, what the API server answered: that is
	// right. The watch may show it only later. Until it does, their health is in progress; if it does
	// not within writtenLimit, they are drift.
	Written map[manifest.ID]metav1.Object
	// Anew are those of IDs that are about to be compared with what they should be: their present
	// state is right, even if they were watched before.
	Anew []manifest.ID
	// Health asks for Notify when their health changes, too.
	Health bool
}

// writtenLimit is how long a watch may take to show what was written. It is long, because all that
// depends on it is when an object is missed that was deleted the moment it was written.
const writtenLimit = 10 * time.Second

// Watch watches objects that Apply did not write, in addition to those that it did. Their present
// state is taken to be right, unless Written says what is: Notify is called, and Observe reports it,
// when one of them is deleted, created again, or loses a field that is managed by Helm to another
// manager. An object that is missing, and was not just written, is drift at once, without a Notify.
// A second Watch replaces the first; for objects that were watched already, what was taken to be
// right stays, so that an edit in between is not taken to be right. The warnings say what may not be
// watched, in a stable order; Notify is called when it is after all. An error says what could not be
// watched for another reason; the rest is.
func (a *Applier) Watch(ctx context.Context, owner Owner, watched Watched) ([]manifest.Problem, error) {
	ctx, cancel := a.bind(ctx)
	defer cancel()
	h, err := a.take(ctx, owner)
	if err != nil {
		return nil, watch.Stable(err)
	}
	defer h.release()
	v := &view{settled: true, health: watched.Health}
	kinds, err := a.kindsOf(ctx, h, watched)
	errs := []error{err}
	for _, id := range watched.IDs {
		if k := kinds[id.GroupVersionKind()]; k != nil {
			v.objects = append(v.objects, k.key(id))
		}
	}
	warnings, err := coverAll(ctx, h, v.scopes())
	errs = append(errs, err)
	a.unwatch(h, v.objects)
	anew := make(map[recordKey]bool, len(watched.Anew))
	for _, id := range watched.Anew {
		if k := kinds[id.GroupVersionKind()]; k != nil {
			anew[k.key(id)] = true
		}
	}
	written := make(map[recordKey]*live, len(watched.Written))
	for id, answer := range watched.Written {
		if k := kinds[id.GroupVersionKind()]; k != nil {
			written[k.key(id)] = observe(answer, false).live
		}
	}
	awaited := make(map[recordKey]*record)
	changed := false
	for _, key := range v.objects {
		switch answer := written[key]; {
		case h.records[key] != nil:
		case answer == nil:
			key.kind.baseline(key.name, h, anew[key])
		default:
			r, is := key.kind.expect(key.name, h, answer)
			changed = changed || is == drifted
			if is == unseen {
				awaited[key] = r
			}
		}
	}
	h.watched.Store(v)
	h.health.Store(v.health || h.applied.Load().wantsHealth())
	if changed {
		a.tell([]*holder{h})
	}
	if len(awaited) > 0 {
		time.AfterFunc(writtenLimit, func() { a.miss(awaited) })
	}
	a.keepOnly(h, h.needed.with(v.scopes()))
	return warnings, errors.Join(errs...)
}

// coverAll begins to watch scopes. It returns what may not be watched, and what could not be for another
// reason.
func coverAll(ctx context.Context, h *holder, wanted scopes) ([]manifest.Problem, error) {
	var warnings []manifest.Problem
	var errs []error
	for k, used := range wanted {
		namespaces := slices.Sorted(maps.Keys(used))
		if err := k.cover(ctx, namespaces); err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", k.gvk.Kind, watch.Stable(err)))
			continue
		}
		warnings = append(warnings, k.unwatched(h, namespaces)...)
	}
	sortProblems(warnings)
	return warnings, errors.Join(errs...)
}

// Unwatch ends a Watch. What Apply wrote is still watched.
func (a *Applier) Unwatch(owner Owner) {
	h, err := a.take(context.Background(), owner)
	if err != nil {
		return
	}
	defer h.release()
	a.unwatch(h, nil)
	h.health.Store(h.applied.Load().wantsHealth())
	a.keepOnly(h, h.needed)
}

// unwatch drops what the last Watch took to be right, except for objects that are still watched.
func (a *Applier) unwatch(h *holder, on []recordKey) {
	v := h.watched.Swap(nil)
	if v == nil {
		return
	}
	kept := make(map[recordKey]bool, len(on))
	for _, key := range on {
		kept[key] = true
	}
	for _, key := range v.objects {
		if h.records[key] == nil && !kept[key] {
			key.kind.forget(key.name, h)
		}
	}
}

// kindsOf returns the kinds of watched objects.
func (a *Applier) kindsOf(ctx context.Context, h *holder, watched Watched) (map[schema.GroupVersionKind]*kind, error) {
	var errs []error
	kinds := make(map[schema.GroupVersionKind]*kind)
	for _, id := range watched.IDs {
		gvk := id.GroupVersionKind()
		if _, asked := kinds[gvk]; asked {
			continue
		}
		k, err := a.kindOf(ctx, h, gvk)
		if kinds[gvk] = k; err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", id.Kind, err))
			continue
		}
		if watched.Health && health.HasStatus(gvk.GroupKind()) {
			k.watchFully()
		}
	}
	return kinds, errors.Join(errs...)
}

// key identifies an object of the kind.
func (k *kind) key(id manifest.ID) recordKey {
	name := types.NamespacedName{Name: id.Name}
	if k.namespaced {
		name.Namespace = id.Namespace
	}
	return recordKey{k, name}
}

// baseline takes the present state of an object to be right. A state that was taken to be right
// before is replaced only if anew is set, and not if it is still what Helm wrote.
func (k *kind) baseline(name types.NamespacedName, h *holder, anew bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.object(name)
	if o.isRival(h) || o.record != nil && o.record.holder == h && (!anew || o.record.untouched(o.live)) {
		return
	}
	r := &record{holder: h}
	if o.live != nil && o.live.owner == h.mark {
		r.uid, r.fields, r.stamp, r.heldBy = o.live.uid, o.live.fields, o.live.stamp, o.live.heldBy
	}
	o.record = r
}

// expect takes the answer to a write of an object to be right, and returns how the object compares
// with that: unseen means that no watch has shown it since.
func (k *kind) expect(name types.NamespacedName, h *holder, answer *live) (*record, condition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.object(name)
	if o.isRival(h) {
		return nil, drifted
	}
	o.record = &record{holder: h, uid: answer.uid, fields: answer.fields, stamp: answer.stamp, heldBy: answer.heldBy, awaits: answer.version, answered: true}
	if o.record.awaiting(o.live) {
		return o.record, unseen
	}
	if o.record = o.record.shown(); o.record.matches(o.live) {
		return o.record, asApplied
	}
	return o.record, drifted
}

// isRival reports whether an object was applied for another holder, and does not carry the mark of
// this one.
func (o *object) isRival(h *holder) bool {
	return o.record != nil && o.record.holder != h && (o.live == nil || o.live.owner != h.mark)
}

// miss makes those objects drift that no watch has shown since they were written.
func (a *Applier) miss(awaited map[recordKey]*record) {
	var concerned []*holder
	for key, r := range awaited {
		if key.kind.miss(key.name, r) {
			concerned = append(concerned, r.holder)
		}
	}
	a.tell(concerned)
}

func (k *kind) miss(name types.NamespacedName, r *record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.objects[name]
	if o == nil || o.record != r {
		return false
	}
	o.record = r.voided()
	return true
}
