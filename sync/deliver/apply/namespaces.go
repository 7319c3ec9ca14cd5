package apply

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/cluster/watch"
)

// namespaceKind and namespaceResource identify Namespaces.
var (
	namespaceKind     = schema.GroupKind{Kind: "Namespace"}
	namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// phase is the phase of a namespace, as far as it matters for writing into it.
type phase int

const (
	phaseAbsent phase = iota
	phaseTerminating
	phaseUsable
)

// namespaces watches the namespaces that holders wait for, each by its name, because few identities
// may watch all of them.
type namespaces struct {
	applier *Applier

	mu      sync.Mutex
	watched map[string]*namespace
}

// namespace is a namespace that holders wait for.
type namespace struct {
	feed *feed
	// seen is the phase that was seen last; it counts once feed is synced.
	seen phase
	// waiting are the holders to notify once the namespace is no longer as they found it.
	waiting map[*holder]phase
}

func newNamespaces(a *Applier) *namespaces {
	return &namespaces{applier: a, watched: make(map[string]*namespace)}
}

// await registers a holder to be notified when a namespace is no longer as it was found: absent or
// terminating. It returns the watch that shows this.
func (n *namespaces) await(h *holder, name string, found phase) *feed {
	n.mu.Lock()
	ns := n.watched[name]
	if ns == nil {
		ns = &namespace{waiting: make(map[*holder]phase), seen: found}
		n.watched[name] = ns
	}
	ns.waiting[h] = found
	if ns.feed == nil || ns.feed.State().Ended && !ns.feed.State().Refused(retryDenied) {
		client := n.applier.target.Metadata().Resource(namespaceResource)
		ns.feed = newFeed(everywhere, watch.Metadata(client, "", "metadata.name="+name), namespaceSink{n, name})
		ns.feed.Start(n.applier.ctx)
	}
	watched, concerned := ns.feed, ns.concerned()
	n.mu.Unlock()
	n.applier.tell(concerned)
	return watched
}

// leave ends the waiting of a holder for all namespaces except some.
func (n *namespaces) leave(h *holder, except map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, ns := range n.watched {
		if !except[name] {
			delete(ns.waiting, h)
		}
		if len(ns.waiting) == 0 {
			ns.feed.End()
			delete(n.watched, name)
		}
	}
}

// concerned returns, once each, the holders for which the namespace is no longer as they found it.
// A namespace that went from absent to terminating is still of no use to them.
func (ns *namespace) concerned() []*holder {
	var concerned []*holder
	for h, found := range ns.waiting {
		if ns.seen == phaseUsable || found == phaseTerminating && ns.seen == phaseAbsent {
			concerned = append(concerned, h)
			delete(ns.waiting, h)
		}
	}
	return concerned
}

// namespaceSink is the sink of the watch of one namespace.
type namespaceSink struct {
	all  *namespaces
	name string
}

func (s namespaceSink) put(f *feed, seen *observed) {
	if seen.live.deleting {
		s.show(f, phaseTerminating)
		return
	}
	s.show(f, phaseUsable)
}

func (s namespaceSink) drop(f *feed, _ *observed) { s.show(f, phaseAbsent) }

func (s namespaceSink) replace(f *feed, all []*observed, _ string) {
	if len(all) == 0 {
		s.show(f, phaseAbsent)
		return
	}
	s.put(f, all[0])
}

func (s namespaceSink) synced(*feed) {}

// lost notifies the holders that wait, so that they ask once more and find out that the namespace
// is not watched.
func (s namespaceSink) lost(f *feed, _ error, first bool) {
	if first {
		return
	}
	s.all.mu.Lock()
	var concerned []*holder
	if ns := s.all.watched[s.name]; ns != nil && ns.feed == f {
		concerned = slices.Collect(maps.Keys(ns.waiting))
	}
	s.all.mu.Unlock()
	s.all.applier.tell(concerned)
}

func (s namespaceSink) show(f *feed, seen phase) {
	s.all.mu.Lock()
	ns := s.all.watched[s.name]
	if ns == nil || ns.feed != f {
		s.all.mu.Unlock()
		return
	}
	ns.seen = seen
	concerned := ns.concerned()
	s.all.mu.Unlock()
	s.all.applier.tell(concerned)
}
