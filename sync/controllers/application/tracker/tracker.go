package tracker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"waybill.dev/waybill/sync/cluster/watch"
)

// defaultLinger is how long a kind without users is still watched, so that an Application that is
// deleted and created again does not cost a list.
const defaultLinger = time.Minute

// answerLimit is how long a kind may remain Starting.
const answerLimit = 10 * time.Second

// Target is one API server under one identity.
type Target interface {
	Mapper() meta.RESTMapper
	Metadata() metadata.Interface
	Dynamic() dynamic.Interface
}

// Options of a Tracker. The functions are called from the goroutines of watches, and must return at
// once. They may call the Tracker.
type Options struct {
	// Annotations that are kept of each object.
	Annotations []string
	// Index returns the keys under which By finds an object. It must depend on nothing but the
	// object.
	Index func(*Object) []string
	// Changed is called when an object was added (before is nil), changed or deleted (after is
	// nil).
	Changed func(before, after *Object)
	// KindChanged is called when the result of State changes for a kind.
	KindChanged func(schema.GroupKind)
	// Linger is how long a kind without users is still watched. Default: a minute.
	Linger time.Duration
}

// Tracker keeps a little metadata of the objects of many kinds. It is safe for concurrent use.
type Tracker struct {
	// ctx bounds the life of the watches.
	ctx         context.Context
	target      Target
	options     Options
	definitions *watch.Definitions[*kind]

	mu    sync.RWMutex
	kinds map[schema.GroupKind]*kind
	// wants holds the kinds that each caller of Want asked for.
	wants map[types.NamespacedName]sets.Set[schema.GroupKind]
	index map[string]map[Ref]*Object
}

// New returns a Tracker of an API server. Its watches end with ctx.
func New(ctx context.Context, target Target, options Options) *Tracker {
	if options.Linger == 0 {
		options.Linger = defaultLinger
	}
	c := &Tracker{
		ctx:     ctx,
		target:  target,
		options: options,
		kinds:   make(map[schema.GroupKind]*kind),
		wants:   make(map[types.NamespacedName]sets.Set[schema.GroupKind]),
		index:   make(map[string]map[Ref]*Object),
	}
	c.definitions = watch.NewDefinitions(ctx, target, func(kinds []*kind) {
		for _, k := range kinds {
			k.resolve()
		}
	})
	return c
}

// Want sets the kinds that a user is interested in from now on, in place of those of the last call.
// It returns at once.
func (c *Tracker) Want(who types.NamespacedName, wanted sets.Set[schema.GroupKind]) {
	c.mu.Lock()
	before := c.wants[who]
	if wanted.Len() == 0 {
		delete(c.wants, who)
	} else {
		c.wants[who] = wanted.Clone()
	}
	var begin, let []*kind
	for gk := range wanted {
		k := c.kinds[gk]
		if k == nil {
			k = newKind(c, gk)
			c.kinds[gk] = k
			begin = append(begin, k)
		}
		k.users.Insert(who)
	}
	for gk := range before.Difference(wanted) {
		k := c.kinds[gk]
		if k.users.Delete(who); k.users.Len() == 0 {
			let = append(let, k)
		}
	}
	c.mu.Unlock()
	for _, k := range begin {
		k.resolve()
		time.AfterFunc(answerLimit, k.overdue)
	}
	for _, k := range let {
		time.AfterFunc(c.options.Linger, k.leave)
	}
}

// Wanting returns the users who want a kind.
func (c *Tracker) Wanting(gk schema.GroupKind) []types.NamespacedName {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if k := c.kinds[gk]; k != nil {
		return k.users.UnsortedList()
	}
	return nil
}

// State returns what is known of a kind as a whole. A kind without users is Starting.
func (c *Tracker) State(gk schema.GroupKind) State {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if k := c.kinds[gk]; k != nil {
		return k.state
	}
	return State{}
}

// Get returns an object, or nil if it does not exist or its kind was never Watched.
func (c *Tracker) Get(ref Ref) *Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if k := c.kinds[ref.GroupKind]; k != nil {
		return k.objects[ref.Namespace][ref.Name]
	}
	return nil
}

// By returns the objects for which Options.Index returns the key, in no particular order.
func (c *Tracker) By(key string) []*Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Values(c.index[key]))
}

// In returns the objects of a kind in a namespace, in no particular order.
func (c *Tracker) In(gk schema.GroupKind, namespace string) []*Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if k := c.kinds[gk]; k != nil {
		return slices.Collect(maps.Values(k.objects[namespace]))
	}
	return nil
}

// Count returns the number of objects of a kind in a namespace, or in all namespaces if that is
// empty.
func (c *Tracker) Count(gk schema.GroupKind, namespace string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	k := c.kinds[gk]
	if k == nil {
		return 0
	}
	if namespace != "" {
		return len(k.objects[namespace])
	}
	count := 0
	for _, objects := range k.objects {
		count += len(objects)
	}
	return count
}

// Written records the answer to a write, so that callers need not wait for the watch to deliver it.
// It does nothing if the object is not known, or is known in a newer version.
func (c *Tracker) Written(gk schema.GroupKind, answer metav1.Object) {
	c.mu.RLock()
	k := c.kinds[gk]
	c.mu.RUnlock()
	if k == nil {
		return
	}
	after := k.reduce(answer)
	c.mu.Lock()
	before := k.objects[after.Namespace][after.Name]
	if before == nil || before.UID != after.UID || !watch.Older(before.Version, after.Version) {
		c.mu.Unlock()
		return
	}
	k.set(after)
	c.mu.Unlock()
	c.changed(before, after)
}

func (c *Tracker) changed(before, after *Object) {
	if c.options.Changed != nil && c.ctx.Err() == nil {
		c.options.Changed(before, after)
	}
}

func (c *Tracker) kindChanged(gk schema.GroupKind) {
	if c.options.KindChanged != nil && c.ctx.Err() == nil {
		c.options.KindChanged(gk)
	}
}

// file adds an object to the index, or removes it. The caller holds the lock.
func (c *Tracker) file(o *Object, add bool) {
	if c.options.Index == nil || o == nil {
		return
	}
	for _, key := range c.options.Index(o) {
		entries := c.index[key]
		if !add {
			if delete(entries, o.Ref); len(entries) == 0 {
				delete(c.index, key)
			}
			continue
		}
		if entries == nil {
			entries = make(map[Ref]*Object, 1)
			c.index[key] = entries
		}
		entries[o.Ref] = o
	}
}
