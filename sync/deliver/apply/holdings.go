package apply

import (
	"errors"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/deliver/hold"
)

// holdings watches ApplicationRollbacks and ApplicationSnapshots, as metadata, as long as one of them holds
// delivered objects.
type holdings struct {
	applier *Applier

	mu    sync.Mutex
	kinds map[schema.GroupVersionResource]*holdersKind
}

// holdersKind is one of the two kinds.
type holdersKind struct {
	feed *watch.Feed[*metav1.PartialObjectMetadata]
	// waiting has, by the name of who holds objects, the holders to notify once that is no longer as it
	// was at the resource version that they have read.
	waiting map[types.NamespacedName]map[*holder]string
}

func newHoldings(a *Applier) *holdings {
	return &holdings{applier: a, kinds: map[schema.GroupVersionResource]*holdersKind{}}
}

// watchHolder has the owner notified when who holds one of its objects changes.
func (r *run) watchHolder(by types.NamespacedName, read *hold.Holder) {
	r.mu.Lock()
	r.heldBy[by] = true
	r.mu.Unlock()
	if !r.applier.holdings.await(r.holder, by, read.Version) {
		r.missWatch()
	}
}

// await registers a holder to be notified when who holds its objects changes. It returns false if that
// cannot be watched.
func (w *holdings) await(h *holder, by types.NamespacedName, version string) bool {
	resource, key := hold.Resource(by)
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[resource]
	if k == nil {
		k = &holdersKind{waiting: map[types.NamespacedName]map[*holder]string{}}
		w.kinds[resource] = k
		source := watch.Metadata(w.applier.rollbacks.Metadata().Resource(resource), "", "")
		k.feed = watch.New(source, &holdersSink{w, k}, reduceHolder)
		k.feed.OnChange(func(state watch.State) {
			if state.Ended && !errors.Is(state.Err, watch.ErrStopped) {
				w.changed(k, nil) // they look once more, and find that it is not watched
			}
		})
		k.feed.Start(w.applier.ctx)
	}
	if k.waiting[key] == nil {
		k.waiting[key] = map[*holder]string{}
	}
	k.waiting[key][h] = version
	return !k.feed.State().Ended
}

func reduceHolder(o metav1.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion(),
	}}
}

// leave ends the waiting of a holder for all but some.
func (w *holdings) leave(h *holder, except map[types.NamespacedName]bool) {
	kept := map[schema.GroupVersionResource]map[types.NamespacedName]bool{}
	for by := range except {
		resource, key := hold.Resource(by)
		if kept[resource] == nil {
			kept[resource] = map[types.NamespacedName]bool{}
		}
		kept[resource][key] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for resource, k := range w.kinds {
		for key, holders := range k.waiting {
			if !kept[resource][key] {
				delete(holders, h)
			}
			if len(holders) == 0 {
				delete(k.waiting, key)
			}
		}
		if len(k.waiting) == 0 {
			k.feed.End()
			delete(w.kinds, resource)
		}
	}
}

// changed notifies the holders that wait for a change of a rollback or snapshot that has changed:
// all of them if isSame is nil.
func (w *holdings) changed(k *holdersKind, isSame func(key types.NamespacedName, version string) bool) {
	var concerned []*holder
	w.mu.Lock()
	for key, holders := range k.waiting {
		for h, version := range holders {
			if (isSame == nil || !isSame(key, version)) && !slices.Contains(concerned, h) {
				concerned = append(concerned, h)
			}
		}
	}
	w.mu.Unlock()
	for _, h := range concerned {
		h.moved.Store(true)
	}
	w.applier.tell(concerned)
}

// holdersSink is the sink of the watch of a kind.
type holdersSink struct {
	all  *holdings
	kind *holdersKind
}

func keyOf(o *metav1.PartialObjectMetadata) types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// Put implements watch.Sink.
func (s *holdersSink) Put(o *metav1.PartialObjectMetadata) {
	s.all.changed(s.kind, func(key types.NamespacedName, version string) bool {
		return key != keyOf(o) || version == o.ResourceVersion
	})
}

// Drop implements watch.Sink.
func (s *holdersSink) Drop(o *metav1.PartialObjectMetadata) {
	s.all.changed(s.kind, func(key types.NamespacedName, _ string) bool { return key != keyOf(o) })
}

// Replace implements watch.Sink.
func (s *holdersSink) Replace(all []*metav1.PartialObjectMetadata, _ string) {
	versions := make(map[types.NamespacedName]string, len(all))
	for _, o := range all {
		versions[keyOf(o)] = o.ResourceVersion
	}
	s.all.changed(s.kind, func(key types.NamespacedName, version string) bool { return versions[key] == version })
}
