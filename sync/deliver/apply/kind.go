package apply

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// kind is what an Applier knows about one kind of object: its resource on the API server, the
// holders that use it, and those of its objects that carry our label.
type kind struct {
	applier    *Applier
	gvk        schema.GroupVersionKind
	gvr        schema.GroupVersionResource
	namespaced bool

	mu      sync.Mutex
	objects map[types.NamespacedName]*object
	// full: spec and status are watched too, because a holder asked for health or status.
	full bool
	// feeds are the watches by namespace; the one under everywhere covers all namespaces.
	feeds map[string]*feed
	// users has the namespaces that each holder delivers to.
	users map[*holder]map[string]bool
	// waiting are the holders to notify when the kind is served, or may be watched again.
	waiting map[*holder]bool
	// waits has, for each holder, the objects that it waits for to be gone.
	waits map[*holder]map[types.NamespacedName]bool
}

// everywhere is the scope of a feed that covers all namespaces.
const everywhere = ""

func newKind(a *Applier, gvk schema.GroupVersionKind, mapping *meta.RESTMapping) *kind {
	return &kind{
		applier:    a,
		gvk:        gvk,
		gvr:        mapping.Resource,
		namespaced: isNamespaced(mapping),
		objects:    make(map[types.NamespacedName]*object),
		feeds:      make(map[string]*feed),
		users:      make(map[*holder]map[string]bool),
		waiting:    make(map[*holder]bool),
		waits:      make(map[*holder]map[types.NamespacedName]bool),
	}
}

func isNamespaced(mapping *meta.RESTMapping) bool {
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// object returns the entry of a name, and adds one if there is none. The caller holds the lock.
func (k *kind) object(name types.NamespacedName) *object {
	o := k.objects[name]
	if o == nil {
		o = &object{}
		k.objects[name] = o
	}
	return o
}

// tidy drops the entry of a name if nothing is known of it any more. The caller
// holds the lock.
func (k *kind) tidy(name types.NamespacedName) {
	if o := k.objects[name]; o != nil && o.idle() {
		delete(k.objects, name)
	}
}

// put implements sink.
func (k *kind) put(f *feed, seen *observed) {
	k.mu.Lock()
	if k.feeds[f.scope] != f {
		k.mu.Unlock()
		return
	}
	f.version = seen.live.version
	var concerned []*holder
	reported := false
	if o := k.object(seen.name); o.live == nil || !watch.Older(seen.live.version, o.live.version) {
		concerned, reported = k.show(seen.name, o, seen.live)
	}
	k.mu.Unlock()
	k.applier.tell(concerned)
	if reported {
		k.applier.tellStatus(seen.live.owner)
	}
}

// drop implements sink.
func (k *kind) drop(f *feed, seen *observed) {
	k.mu.Lock()
	if k.feeds[f.scope] != f {
		k.mu.Unlock()
		return
	}
	f.version = seen.live.version
	concerned := k.vanish(seen.name, seen.live.version)
	k.mu.Unlock()
	k.applier.tell(concerned)
}

// show records a new state of a live object. It returns the holders that this concerns, and whether
// the status of the object has changed. The caller holds the lock.
func (k *kind) show(name types.NamespacedName, o *object, now *live) (concerned []*holder, reported bool) {
	waiting := o.waiting
	concerned, reported = o.show(now)
	if len(o.waiting) == 0 {
		k.endWaits(name, waiting)
	}
	return concerned, reported
}

// endWaits records that holders need not wait for an object any more. The caller holds the lock.
func (k *kind) endWaits(name types.NamespacedName, waiting []*holder) {
	for _, h := range waiting {
		if delete(k.waits[h], name); len(k.waits[h]) == 0 {
			delete(k.waits, h)
		}
	}
}

// vanish records that an object no longer existed at a version, and returns the holders that this
// concerns. The caller holds the lock.
func (k *kind) vanish(name types.NamespacedName, version string) []*holder {
	o := k.objects[name]
	if o == nil || o.live != nil && watch.Older(version, o.live.version) {
		return nil // what is known is newer: we created it again
	}
	if len(o.writes) > 0 {
		o.gone = version
	}
	concerned, _ := k.show(name, o, nil)
	k.tidy(name)
	return concerned
}

// replace implements sink: all is what the scope of the feed holds at a version. It is compared
// with what is known, so that nothing is missed that happened while there was no watch.
func (k *kind) replace(f *feed, all []*observed, version string) {
	k.mu.Lock()
	if k.feeds[f.scope] != f {
		k.mu.Unlock()
		return
	}
	var concerned []*holder
	if watch.Older(version, f.version) {
		concerned = k.void(f.scope)
	}
	f.version = version
	var marks []string
	listed := make(map[types.NamespacedName]bool, len(all))
	for _, seen := range all {
		listed[seen.name] = true
		if o := k.object(seen.name); o.live == nil || !watch.Older(seen.live.version, o.live.version) {
			told, reported := k.show(seen.name, o, seen.live)
			concerned = append(concerned, told...)
			if reported {
				marks = append(marks, seen.live.owner)
			}
		}
	}
	for name, o := range k.objects {
		if o.live != nil && !listed[name] && inScope(f.scope, name) {
			concerned = append(concerned, k.vanish(name, version)...)
		}
	}
	k.mu.Unlock()
	k.applier.tell(concerned)
	k.applier.tellStatus(marks...)
}

// synced implements sink: the objects of a scope are watched, or watched again. A holder that
// delivers to another scope that is not watched yet is notified once more when it is.
func (k *kind) synced(f *feed) {
	k.mu.Lock()
	if k.feeds[f.scope] != f {
		k.mu.Unlock()
		return
	}
	if f.scope == everywhere {
		k.stopNamespaces()
	}
	concerned := slices.Collect(maps.Keys(k.waiting))
	maps.DeleteFunc(k.waiting, func(h *holder, _ bool) bool { return k.coversAll(k.users[h]) })
	k.mu.Unlock()
	k.applier.tell(concerned)
}

// void drops all that is known of a scope, and returns the holders that this concerns: the API
// server went back in time, because it was restored from a backup. Objects may be older than what
// was applied and still look the same, so all of them are applied once more. What Helm wrote is
// drift, whatever it looks like. The caller holds the lock.
func (k *kind) void(scope string) []*holder {
	var concerned []*holder
	for name, o := range k.objects {
		if !inScope(scope, name) {
			continue
		}
		if o.record != nil {
			concerned = append(concerned, o.record.holder)
		}
		concerned = append(concerned, o.waiting...)
		k.endWaits(name, o.waiting)
		*o = object{writes: o.writes, record: o.record.voided()}
		k.tidy(name)
	}
	return concerned
}

func inScope(scope string, name types.NamespacedName) bool {
	return scope == everywhere || scope == name.Namespace
}

// sight is what is known of one object at a moment.
type sight struct {
	// known: live is the truth, even if it is nil. Otherwise the API server has to be asked.
	known bool
	live  *live
	// managers wrote the fields of live. Set by a look-up only.
	managers []string
	// own is what the holder applied last; nil if it applied nothing.
	own *record
	// current: own is also the last that any holder of this Applier applied.
	current bool
	// covered: a watch shows changes.
	covered bool
}

// see returns what is known of an object on behalf of a holder. An object that no watch shows
// counts as unknown: it may exist without our label.
func (k *kind) see(name types.NamespacedName, h *holder) sight {
	s := sight{own: h.records[recordKey{k, name}]}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.covered = k.covered(name.Namespace)
	if o := k.objects[name]; o != nil {
		s.current = s.own != nil && o.record == s.own
		if s.covered {
			s.live = o.live
			s.known = o.live != nil
		}
	}
	return s
}

// appliedAs reports whether the holder has applied the object before as it is wanted now.
func (s sight) appliedAs(desired digest) bool { return s.own != nil && s.own.desired == desired }

// upToDate reports whether an item needs no write: it is what the holder applied last, and a watch
// shows that it still is.
func (s sight) upToDate(it *item) bool {
	return s.known && s.current && !s.own.isHeld && s.own.desired == it.desired && s.own.ignored == it.ignored.Digest() && s.own.matches(s.live)
}

// settle ends a write with the object that the API server returned, and records it for the holder.
// It notifies another holder that applied the object before, and also the holder itself if the
// object has already been changed again.
func (k *kind) settle(name types.NamespacedName, applied *live, r *record) {
	k.mu.Lock()
	o := k.object(name)
	o.end(r.holder)
	o.answered = applied.reported
	if k.covered(name.Namespace) && o.outdatedBy(applied) {
		if k.full && health.HasStatus(k.gvk.GroupKind()) {
			applied.status, applied.message = health.InProgress, "has just been applied"
		}
		if o.live != nil && o.live.uid == applied.uid {
			applied.reported = o.live.reported // a watch shows this, no answer does
		}
		o.live = applied
	}
	o.gone = ""
	var concerned []*holder
	if o.record != nil && o.record.holder != r.holder {
		concerned = append(concerned, o.record.holder)
	}
	o.record = r
	if k.covered(name.Namespace) && !r.matches(o.live) {
		concerned = append(concerned, r.holder)
	}
	k.mu.Unlock()
	k.applier.tell(concerned)
}

// forget drops what a holder applied. If the object does not exist, it notifies the holders that
// wait for it: no other holder is about to create it any more.
func (k *kind) forget(name types.NamespacedName, h *holder) {
	k.mu.Lock()
	var concerned []*holder
	if o := k.objects[name]; o != nil {
		if o.record != nil && o.record.holder == h {
			if o.record = nil; o.live == nil {
				concerned, o.waiting = o.waiting, nil
				k.endWaits(name, concerned)
			}
		}
		k.tidy(name)
	}
	k.mu.Unlock()
	k.applier.tell(concerned)
}

// awaitGone registers a holder to be notified when an object, which looked like seen, is gone or
// belongs to another owner. It returns false if that is so already.
func (k *kind) awaitGone(name types.NamespacedName, seen *live, h *holder) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.covered(name.Namespace) {
		o := k.objects[name]
		if o == nil || o.live == nil || o.live.uid != seen.uid {
			return false
		}
		if seen.deleting && !o.live.deleting { // the watch is behind; do not delete it again
			now := *o.live
			now.deleting = true
			o.live = &now
		}
	}
	k.waitFor(name, k.object(name), h)
	return true
}

// waitFor adds a holder to those that wait for an object to become free. The caller holds the lock.
func (k *kind) waitFor(name types.NamespacedName, o *object, h *holder) {
	o.wait(h)
	if k.waits[h] == nil {
		k.waits[h] = make(map[types.NamespacedName]bool)
	}
	k.waits[h][name] = true
}

// id identifies an object of the kind.
func (k *kind) id(name types.NamespacedName) manifest.ID {
	return manifest.ID{Group: k.gvk.Group, Version: k.gvk.Version, Kind: k.gvk.Kind, Namespace: name.Namespace, Name: name.Name}
}

// scopeID identifies all objects of the kind in a namespace.
func (k *kind) scopeID(namespace string) manifest.ID {
	return k.id(types.NamespacedName{Namespace: namespace})
}

// observe returns the health of an object, if it is known, and how the object compares with what
// the holder applied.
func (k *kind) observe(name types.NamespacedName, h *holder) (health.Item, condition) {
	item := health.Item{ID: k.id(name)}
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.objects[name]
	if o == nil {
		o = &object{}
	}
	mine := o.record != nil && o.record.holder == h
	if !k.covered(name.Namespace) {
		item.Status, item.Message = health.Unknown, "it is not watched"
		if mine && !health.HasStatus(k.gvk.GroupKind()) {
			item.Status, item.Message = health.OfMetadata(false)
		}
		if k.interrupted(name.Namespace) {
			return item, unseen
		}
		return item, unwatched
	}
	if mine && o.record.awaiting(o.live) {
		item.Status, item.Message = health.InProgress, "has just been written"
		return item, unseen
	}
	item.Status, item.Message = o.health(h)
	switch {
	case o.record == nil:
		return item, unseen
	case mine && o.record.matches(o.live):
		return item, asApplied
	default:
		return item, drifted
	}
}
