package membership

import (
	"cmp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Index finds the Applications of an object in constant time: by namespace, kind, and a label that
// their selectors require. The zero value is empty. It is safe for concurrent use.
type Index struct {
	mu         sync.RWMutex
	apps       map[types.NamespacedName]*Application
	namespaces map[string]map[schema.GroupKind]*bucket
}

// Set adds the Application, or replaces the one with the same key. It reports whether that changes
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
	if old != nil && x.remove(old) { // after adding the new one, so that kinds listed by both stay
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

// Get returns the Application of that key, or nil if there is none.
func (x *Index) Get(key types.NamespacedName) *Application {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.apps[key]
}

// Candidates returns the Applications in the object's namespace that match it, sorted by name,
// including those that are being deleted.
func (x *Index) Candidates(gk schema.GroupKind, obj metav1.Object) []*Application {
	return x.candidates(gk, obj.GetNamespace(), obj.GetName(), obj.GetLabels())
}

// Listed returns the kinds that Applications list, sorted, by namespace.
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

// add adds an Application, and reports whether it lists a kind that was not listed before.
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

// remove removes an Application, and reports whether a kind is no longer listed.
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
	// pairs holds an Application under each value of one label that it requires. An object has only
	// one value of a label, so that it finds the Application once.
	pairs map[pair][]*Application

	// rest holds the Applications that require no label to have a value.
	rest []*Application

	// under holds the pairs that an Application is stored under; nil for those in rest.
	under map[*Application][]pair
}

// add stores an Application under the required label that has the fewest others, so that a label
// which all have in common, such as `env: prod`, does not lead to one long list.
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
