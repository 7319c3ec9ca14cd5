package application

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/membership"
)

// entry is what is prepared for one Application. It is not changed once it is created.
type entry struct {
	uid        types.UID
	version    string
	generation int64
	deleting   bool
	// since is when this process first saw that the Application is being deleted.
	since time.Time
	// orphaning: it is deleted with --cascade=orphan, so it owns nothing any more.
	orphaning bool

	// member is nil if the spec is invalid; err says why.
	member *membership.Application
	err    error
	// listed are the kinds of the spec; wanted are those, and the kinds of objects in the status
	// that refer to the Application.
	listed, wanted sets.Set[schema.GroupKind]
	// named are the objects that the spec lists by name.
	named []tracker.Ref
	// dependencies of the spec, as keys.
	dependencies []types.NamespacedName
	// expressions are compiled from sources.
	expressions map[schema.GroupKind]*health.Expression
	sources     map[schema.GroupKind]v1alpha1.HealthExpression
}

// index holds all Applications, prepared, and finds them by what they name.
type index struct {
	mu      sync.RWMutex
	entries map[types.NamespacedName]*entry
	// listing finds Applications by an object that they list by name, depending by one of
	// their dependencies.
	listing   map[tracker.Ref]sets.Set[types.NamespacedName]
	depending map[types.NamespacedName]sets.Set[types.NamespacedName]
}

func newIndex() *index {
	return &index{
		entries:   make(map[types.NamespacedName]*entry),
		listing:   make(map[tracker.Ref]sets.Set[types.NamespacedName]),
		depending: make(map[types.NamespacedName]sets.Set[types.NamespacedName]),
	}
}

// keys returns the names of all Applications.
func (x *index) keys() []types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.entries))
}

func (x *index) get(key types.NamespacedName) *entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.entries[key]
}

// put records the current state of an Application, and returns its entries before and after. The
// same state again, or an older one, changes nothing.
func (x *index) put(key types.NamespacedName, app *v1alpha1.Application) (before, after *entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before = x.entries[key]
	if before != nil && before.uid == app.UID {
		wanted := wantedKinds(app)
		if watch.Older(app.ResourceVersion, before.version) || before.generation == app.Generation &&
			before.deleting == (app.DeletionTimestamp != nil) && before.wanted.Equal(wanted) && (before.orphaning || !orphans(app)) {
			return before, before
		}
	}
	after = prepare(app, before)
	x.update(key, before, false)
	x.update(key, after, true)
	x.entries[key] = after
	return before, after
}

// remove removes an Application, and returns its entry.
func (x *index) remove(key types.NamespacedName) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.entries[key]
	x.update(key, before, false)
	delete(x.entries, key)
	return before
}

// update adds an entry to the indexes, or removes it from them.
func (x *index) update(key types.NamespacedName, e *entry, add bool) {
	if e == nil {
		return
	}
	for _, ref := range e.named {
		insert(x.listing, ref, key, add)
	}
	for _, dependency := range e.dependencies {
		insert(x.depending, dependency, key, add)
	}
}

func insert[K comparable](index map[K]sets.Set[types.NamespacedName], at K, key types.NamespacedName, add bool) {
	switch {
	case add && index[at] == nil:
		index[at] = sets.New(key)
	case add:
		index[at].Insert(key)
	default:
		if index[at].Delete(key); index[at].Len() == 0 {
			delete(index, at)
		}
	}
}

// listers returns the Applications that list an object by name.
func (x *index) listers(ref tracker.Ref) []types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.listing[ref].UnsortedList()
}

// dependents returns the Applications that depend on one, directly or through others: a change of
// it may close a cycle for any of them.
func (x *index) dependents(key types.NamespacedName) []types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := sets.New[types.NamespacedName]()
	for queue := []types.NamespacedName{key}; len(queue) > 0; queue = queue[1:] {
		for dependent := range x.depending[queue[0]] {
			if !found.Has(dependent) {
				found.Insert(dependent)
				queue = append(queue, dependent)
			}
		}
	}
	return found.UnsortedList()
}

// prepare creates the entry of an Application. Expressions that have not changed are taken from
// before: their results for objects still count.
func prepare(app *v1alpha1.Application, before *entry) *entry {
	e := &entry{
		uid: app.UID, version: app.ResourceVersion, generation: app.Generation, deleting: app.DeletionTimestamp != nil,
		listed: sets.New[schema.GroupKind](), wanted: wantedKinds(app),
	}
	same := before != nil && before.uid == e.uid
	if e.deleting {
		if e.since = time.Now(); same && before.deleting {
			e.since = before.since
		}
	}
	e.orphaning = orphans(app) || same && before.orphaning
	e.member, e.err = membership.Compile(app)
	if e.orphaning && e.member != nil {
		e.member.Ownership = v1alpha1.OwnershipObserve
	}
	for _, c := range app.Spec.Components {
		e.listed.Insert(kindOf(c))
		if c.Name != "" {
			e.named = append(e.named, refOf(app.Namespace, c))
		}
	}
	for _, name := range app.Spec.Dependencies {
		e.dependencies = append(e.dependencies, types.NamespacedName{Namespace: app.Namespace, Name: name})
	}
	if !same {
		before = nil
	}
	e.compile(app.Spec.HealthExpressions, before)
	return e
}

func (e *entry) compile(expressions []v1alpha1.HealthExpression, before *entry) {
	if len(expressions) == 0 {
		return
	}
	e.expressions = make(map[schema.GroupKind]*health.Expression, len(expressions))
	e.sources = make(map[schema.GroupKind]v1alpha1.HealthExpression, len(expressions))
	for _, x := range expressions {
		gk := schema.GroupKind{Group: x.Group, Kind: x.Kind}
		e.sources[gk] = x
		if before != nil && before.expressions[gk] != nil && before.sources[gk] == x {
			e.expressions[gk] = before.expressions[gk]
			continue
		}
		compiled, err := health.NewExpression(x.Current, x.Failed)
		if err != nil {
			e.err = errors.Join(e.err, fmt.Errorf("compile healthExpressions of %s: %w", gk, err))
			continue
		}
		e.expressions[gk] = compiled
	}
}

// orphans reports whether the Application is deleted with --cascade=orphan. The garbage collector
// removes the ownerReferences that it knows of, but may not know of one that was just added. It
// also removes its finalizer, before ours is removed: so a condition says it, too.
func orphans(app *v1alpha1.Application) bool {
	return app.DeletionTimestamp != nil && (slices.Contains(app.Finalizers, metav1.FinalizerOrphanDependents) ||
		conditions.IsTrue(app, v1alpha1.OrphaningCondition))
}

// wantedKinds returns the kinds of the spec, and those of objects in the status while the
// Application holds our finalizer.
func wantedKinds(app *v1alpha1.Application) sets.Set[schema.GroupKind] {
	wanted := sets.New[schema.GroupKind]()
	for _, c := range app.Spec.Components {
		wanted.Insert(kindOf(c))
	}
	if slices.Contains(app.Finalizers, v1alpha1.OwnershipFinalizer) {
		for _, c := range app.Status.Components {
			wanted.Insert(schema.GroupKind{Group: c.Group, Kind: c.Kind})
		}
	}
	return wanted
}

func kindOf(c v1alpha1.ApplicationComponent) schema.GroupKind {
	return schema.GroupKind{Group: c.Group, Kind: c.Kind}
}

func refOf(namespace string, c v1alpha1.ApplicationComponent) tracker.Ref {
	return tracker.Ref{GroupKind: kindOf(c), NamespacedName: types.NamespacedName{Namespace: namespace, Name: c.Name}}
}

// affected returns the kinds whose objects must be checked after a change.
func affected(before, after *entry) []schema.GroupKind {
	kinds := sets.New[schema.GroupKind]()
	for _, e := range []*entry{before, after} {
		if e != nil {
			kinds.Insert(e.wanted.UnsortedList()...)
		}
	}
	return slices.Collect(maps.Keys(kinds))
}
