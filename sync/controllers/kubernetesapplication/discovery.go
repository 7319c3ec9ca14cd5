package kubernetesapplication

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/keyed"
)

// pollInterval is how often a cluster is asked for a version that no CustomResourceDefinition may
// ever announce: that of an aggregated API server, or of a newer Kubernetes.
const pollInterval = 2 * time.Minute

// discoveryPollers ask clusters for kinds that applications wait for and that nothing announces.
// All applications share them.
type discoveryPollers struct {
	every time.Duration
	tell  func(types.NamespacedName)
	at    keyed.Map[pollTarget, *poller]
}

// pollTarget is what a poller asks, and for what.
type pollTarget struct {
	cluster *cluster.Cluster
	version schema.GroupVersion
}

type poller struct {
	// end stops it.
	end context.CancelFunc
	// waiting has the kinds that each application waits for. It is guarded by the map that has the poller.
	waiting map[types.NamespacedName]sets.Set[string]
}

func newDiscoveryPollers(tell func(types.NamespacedName)) *discoveryPollers {
	return &discoveryPollers{every: pollInterval, tell: tell}
}

// add registers an application to be enqueued when a cluster serves a kind. It ends with the cluster.
func (d *discoveryPollers) add(c *cluster.Cluster, app types.NamespacedName, gvk schema.GroupVersionKind) {
	t := pollTarget{cluster: c, version: gvk.GroupVersion()}
	d.at.Change(t, func(found *poller) (*poller, bool) {
		if found == nil {
			ctx, cancel := context.WithCancel(c.Context())
			found = &poller{end: cancel, waiting: map[types.NamespacedName]sets.Set[string]{}}
			go d.run(ctx, t, found)
		}
		if found.waiting[app] == nil {
			found.waiting[app] = sets.New[string]()
		}
		found.waiting[app].Insert(gvk.Kind)
		return found, true
	})
}

// run asks the cluster until no application waits any more.
func (d *discoveryPollers) run(ctx context.Context, t pollTarget, found *poller) {
	ticker := time.NewTicker(d.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			found.end()
			d.at.Change(t, func(current *poller) (*poller, bool) { return current, current != nil && current != found })
			return
		case <-ticker.C:
			for _, app := range d.seen(t, found, d.ask(ctx, t)) {
				d.tell(app)
			}
		}
	}
}

// ask returns what the cluster serves, or nothing if it does not answer: it is asked again.
func (d *discoveryPollers) ask(ctx context.Context, t pollTarget) sets.Set[string] {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	served, err := t.cluster.Served(ctx, t.version)
	if err != nil {
		return nil
	}
	return served
}

// seen returns the applications that waited for any of the served kinds, and ends their waiting.
func (d *discoveryPollers) seen(t pollTarget, found *poller, served sets.Set[string]) (apps []types.NamespacedName) {
	d.at.Change(t, func(current *poller) (*poller, bool) {
		if current != found {
			return current, current != nil
		}
		for app, kinds := range found.waiting {
			if kinds.Intersection(served).Len() > 0 {
				apps = append(apps, app)
				delete(found.waiting, app)
			}
		}
		return found, !found.endsUnused()
	})
	return apps
}

// leave ends all waiting of an application.
func (d *discoveryPollers) leave(app types.NamespacedName) {
	d.at.DropFunc(func(_ pollTarget, found *poller) bool {
		delete(found.waiting, app)
		return found.endsUnused()
	})
}

// endsUnused ends a poller that no application waits for, and reports whether it does.
func (p *poller) endsUnused() bool {
	if len(p.waiting) > 0 {
		return false
	}
	p.end()
	return true
}
