package kubernetesapplication

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/sync/cluster"
)

// lookEvery is how often a cluster is asked for a version that no CustomResourceDefinition may
// ever announce: that of an aggregated API server, or of a newer Kubernetes.
const lookEvery = 2 * time.Minute

// lookouts ask clusters for kinds that applications wait for and that nothing announces. All
// applications share them.
type lookouts struct {
	every time.Duration
	tell  func(types.NamespacedName)

	mu sync.Mutex
	at map[post]*lookout
}

// post is where a lookout looks, and what it looks for.
type post struct {
	cluster *cluster.Cluster
	version schema.GroupVersion
}

type lookout struct {
	// end stops it.
	end context.CancelFunc
	// waiting has the kinds that each application waits for.
	waiting map[types.NamespacedName]sets.Set[string]
}

func newLookouts(tell func(types.NamespacedName)) *lookouts {
	return &lookouts{every: lookEvery, tell: tell, at: map[post]*lookout{}}
}

// add registers an application to be woken when a cluster serves a kind. It ends with the cluster.
func (l *lookouts) add(c *cluster.Cluster, app types.NamespacedName, gvk schema.GroupVersionKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := post{cluster: c, version: gvk.GroupVersion()}
	found := l.at[p]
	if found == nil {
		ctx, cancel := context.WithCancel(c.Context())
		found = &lookout{end: cancel, waiting: map[types.NamespacedName]sets.Set[string]{}}
		l.at[p] = found
		go l.look(ctx, p, found)
	}
	if found.waiting[app] == nil {
		found.waiting[app] = sets.New[string]()
	}
	found.waiting[app].Insert(gvk.Kind)
}

// look asks the cluster until no application waits any more.
func (l *lookouts) look(ctx context.Context, p post, found *lookout) {
	ticker := time.NewTicker(l.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			l.mu.Lock()
			defer l.mu.Unlock()
			l.relieve(p, found)
			return
		case <-ticker.C:
			for _, app := range l.seen(p, found, l.ask(ctx, p)) {
				l.tell(app)
			}
		}
	}
}

// ask returns what the cluster serves, or nothing if it does not answer: it is asked again.
func (l *lookouts) ask(ctx context.Context, p post) sets.Set[string] {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	served, err := p.cluster.Served(ctx, p.version)
	if err != nil {
		return nil
	}
	return served
}

// seen returns the applications that waited for any of the served kinds, and ends their waiting.
func (l *lookouts) seen(p post, found *lookout, served sets.Set[string]) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	var apps []types.NamespacedName
	for app, kinds := range found.waiting {
		if kinds.Intersection(served).Len() > 0 {
			apps = append(apps, app)
			delete(found.waiting, app)
		}
	}
	if len(found.waiting) == 0 {
		l.relieve(p, found)
	}
	return apps
}

// leave ends all waiting of an application.
func (l *lookouts) leave(app types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, found := range l.at {
		delete(found.waiting, app)
		if len(found.waiting) == 0 {
			l.relieve(p, found)
		}
	}
}

// relieve ends a lookout. The caller holds the lock.
func (l *lookouts) relieve(p post, found *lookout) {
	found.end()
	if l.at[p] == found {
		delete(l.at, p)
	}
}
