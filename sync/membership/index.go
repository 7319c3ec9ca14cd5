package membership

import (
	"cmp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Index holds Applications so that those of an object are found in constant time: by namespace,
// kind, and a label that their selectors require. The zero value is empty. It is safe for
// concurrent use.
type Index struct {
	mu         sync.RWMutex
	apps       map[types.NamespacedName]*Application
	namespaces map[string]map[schema.GroupKind]*bucket
}

// Set adds the Application, or replaces the one of its key. It reports whether that changes
// which kinds are listed in the namespace.
func (x *Index) Set(a *Application) (listed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.apps == nil {
		x.apps = map[types.NamespacedName]*Application{}
		x.namespaces = map[string]map[schema.GroupKind]*bucket{}
	}
	old := x.apps[a.Key]
	if old == a {
		return false
	}
	x.apps[a.Key] = a
	listed = x.add(a)
	if old != nil && x.remove(old) { // after the new one, so that what both list stays
		listed = true
	}
	return listed
}

// Delete removes the Application of that key, if there is one. It reports whether that changes
// which kinds are listed in the namespace.
func (x *Index) Delete(key types.NamespacedName) (listed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.apps[key]
	if old == nil {
		return false
	}
	delete(x.apps, key)
	return x.remove(old)
}

// Get returns the Application of that key, nil where there is none.
func (x *Index) Get(key types.NamespacedName) *Application {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.apps[key]
}

// Candidates returns the Applications of the object's namespace that match it, sorted by name,
// those that are being deleted included.
func (x *Index) Candidates(gk schema.GroupKind, obj metav1.Object) []*Application {
	return x.candidates(gk, obj.GetNamespace(), obj.GetName(), obj.GetLabels())
}

// Listed returns the kinds that Applications list, by namespace, sorted.
func (x *Index) Listed() map[string][]schema.GroupKind {
	x.mu.RLock()
	defer x.mu.RUnlock()
	listed := make(map[string][]schema.GroupKind, len(x.namespaces))
	for namespace, kinds := range x.namespaces {
		for gk := range kinds {
			listed[namespace] = append(listed[namespace], gk)
		}
		slices.SortFunc(listed[namespace], func(a, b schema.GroupKind) int {
			return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
		})
	}
	return listed
}

func (x *Index) candidates(gk schema.GroupKind, namespace, name string, labels map[string]string) []*Application {
	x.mu.RLock()
	defer x.mu.RUnlock()
	b := x.namespaces[namespace][gk]
	if b == nil {
		return nil
	}
	var found []*Application
	consider := func(apps []*Application) {
		for _, a := range apps {
			if a.Lists(gk, name) && a.Selects(labels) {
				found = append(found, a)
			}
		}
	}
	consider(b.rest)
	for key, value := range labels {
		consider(b.pairs[pair{key, value}])
	}
	slices.SortFunc(found, func(a, b *Application) int { return cmp.Compare(a.Key.Name, b.Key.Name) })
	return found
}

// add reports whether it lists a kind that was not listed.
func (x *Index) add(a *Application) (fresh bool) {
	kinds := x.namespaces[a.Key.Namespace]
	if kinds == nil && len(a.kinds) > 0 {
		kinds = map[schema.GroupKind]*bucket{}
		x.namespaces[a.Key.Namespace] = kinds
	}
	for gk := range a.kinds {
		if kinds[gk] == nil {
			fresh = true
			kinds[gk] = &bucket{pairs: map[pair][]*Application{}, under: map[*Application][]pair{}}
		}
		kinds[gk].add(a)
	}
	return fresh
}

// remove reports whether a kind is listed no more.
func (x *Index) remove(a *Application) (gone bool) {
	kinds := x.namespaces[a.Key.Namespace]
	for gk := range a.kinds {
		kinds[gk].remove(a)
		if len(kinds[gk].under) == 0 {
			gone = true
			delete(kinds, gk)
		}
	}
	if len(kinds) == 0 {
		delete(x.namespaces, a.Key.Namespace)
	}
	return gone
}

// bucket holds the Applications that list one kind in one namespace.
type bucket struct {
	// pairs has an Application under each value of one label that it requires: an object has one
	// of them, so the Application is found once.
	pairs map[pair][]*Application

	// rest are those that require no label to have a value.
	rest []*Application

	// under says where an Application is; nil for the rest.
	under map[*Application][]pair
}

// add chooses the label that fewest others are under, so that a label which all have in common,
// such as `env: prod`, does not make one long list.
func (b *bucket) add(a *Application) {
	var best []pair
	least := 0
	for _, pairs := range a.required() {
		most := 0
		for _, p := range pairs {
			most = max(most, len(b.pairs[p]))
		}
		if best == nil || most < least {
			best, least = pairs, most
		}
	}
	b.under[a] = best
	if best == nil {
		b.rest = append(b.rest, a)
	}
	for _, p := range best {
		b.pairs[p] = append(b.pairs[p], a)
	}
}

func (b *bucket) remove(a *Application) {
	best := b.under[a]
	delete(b.under, a)
	is := func(other *Application) bool { return other == a }
	if best == nil {
		b.rest = slices.DeleteFunc(b.rest, is)
	}
	for _, p := range best {
		b.pairs[p] = slices.DeleteFunc(b.pairs[p], is)
		if len(b.pairs[p]) == 0 {
			delete(b.pairs, p)
		}
	}
}
