package applicationsnapshot

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// gate lets one snapshot of an application at a time quiesce it: the post-hook of one would release it
// under another. The zero value is open.
type gate struct {
	mu      sync.Mutex
	holders map[types.NamespacedName]types.UID
	waiting map[types.NamespacedName]map[types.NamespacedName]bool
}

// enter reports whether a snapshot holds the application now. If not, release of the other returns its
// name.
func (g *gate) enter(application types.NamespacedName, uid types.UID, name types.NamespacedName) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holders == nil {
		g.holders, g.waiting = map[types.NamespacedName]types.UID{}, map[types.NamespacedName]map[types.NamespacedName]bool{}
	}
	if holder := g.holders[application]; holder == "" || holder == uid {
		g.holders[application] = uid
		delete(g.waiting[application], name)
		return true
	}
	if g.waiting[application] == nil {
		g.waiting[application] = map[types.NamespacedName]bool{}
	}
	g.waiting[application][name] = true
	return false
}

// release returns the names of the snapshots that wait for what one held; none if it held nothing.
func (g *gate) release(uid types.UID) []types.NamespacedName {
	g.mu.Lock()
	defer g.mu.Unlock()
	for application, holder := range g.holders {
		if holder != uid {
			continue
		}
		delete(g.holders, application)
		var names []types.NamespacedName
		for name := range g.waiting[application] {
			names = append(names, name)
		}
		delete(g.waiting, application)
		return names
	}
	return nil
}
