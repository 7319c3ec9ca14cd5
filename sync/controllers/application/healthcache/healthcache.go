package healthcache

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/health"
)

// Target is one API server accessed with one identity.
type Target interface {
	Metadata() metadata.Interface
	Dynamic() dynamic.Interface
}

// Options of a Cache. All are required.
type Options struct {
	// Changed is called with an object whose health has become known or has changed. It must return
	// at once.
	Changed func(tracker.Ref)
	// Count returns how many objects of a kind there are in a namespace; empty means all
	// namespaces. It decides between reading one by one and reading in pages.
	Count func(kind schema.GroupKind, namespace string) int
	// Missing is called with a resource that the API server no longer serves.
	Missing func(schema.GroupVersionResource)
}

// Query asks for the health of an object.
type Query struct {
	tracker.Ref
	// Resource is the resource of the kind in the API server.
	Resource schema.GroupVersionResource
	UID      types.UID
	// Version is the minimum resource version of the object that the answer must reflect.
	Version string
	// Expression decides the health; nil means health.Of.
	Expression *health.Expression

	// rule is the one that health.Of goes by, if it does. Set by Get.
	rule *health.Rule
}

// Result is the health of an object.
type Result struct {
	Status  health.Status
	Message string
}

// Cache remembers the health of objects. It is safe for concurrent use.
type Cache struct {
	ctx     context.Context
	target  Target
	options Options

	mu      sync.Mutex
	entries map[tracker.Ref]*entry
	lanes   map[schema.GroupVersionResource]*lane
	// looking bounds how many lists of Pods there are at a time.
	looking chan struct{}
	// listings is how many kinds are being read in pages. It is bounded, and so is memory.
	listings int
}

// entry is what is known about one object. It is guarded by the lock of Cache.
type entry struct {
	// asked is the last query.
	asked Query
	// pods is what the Pods of a workload say of why it is not well.
	pods pods
	// answered is true if result is set: to a query about uid, at version, by expression.
	answered   bool
	result     Result
	uid        types.UID
	version    string
	expression *health.Expression
	rule       *health.Rule
	// stale is true if result only says that the object cannot be read.
	stale bool
	// failures counts failed attempts in a row. retry is the timer of the next one; there is one for
	// all queries, because each new version of the object asks a new one.
	failures int
	retry    *time.Timer
}

// fits reports whether result answers a query, apart from its version.
func (e *entry) fits(q Query) bool {
	return e.answered && e.uid == q.UID && e.expression == q.Expression && e.rule == q.rule
}

// settles reports whether result answers a query.
func (e *entry) settles(q Query) bool {
	return e.fits(q) && !e.stale && !watch.Older(e.version, q.Version)
}

// New returns the Cache of an API server. Reading ends with ctx.
func New(ctx context.Context, target Target, options Options) *Cache {
	return &Cache{
		ctx:     ctx,
		target:  target,
		options: options,
		entries: make(map[tracker.Ref]*entry),
		lanes:   make(map[schema.GroupVersionResource]*lane),
		looking: make(chan struct{}, looksAtATime),
	}
}

// Get returns the last known health of an object, or false if none is known. If it is older than
// the query, the object is read in the background, and Changed is called if its health is then
// different.
func (c *Cache) Get(q Query) (Result, bool) {
	if q.Expression == nil {
		q.rule = health.RuleOf(q.GroupKind)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[q.Ref]
	if e == nil {
		e = &entry{}
		c.entries[q.Ref] = e
	}
	if !e.settles(q) && e.asked != q { // otherwise it is being read, or will be read again later
		e.asked = q
		c.lane(q.Resource).add(q.Ref)
	}
	return e.told(), e.fits(q)
}

// Forget drops what is known about an object.
func (c *Cache) Forget(ref tracker.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[ref]; e != nil {
		e.pods.end()
		c.lane(e.asked.Resource).remove(ref)
		delete(c.entries, ref)
	}
}

// wanted returns the query that is open about an object, if any. The caller holds the lock.
func (c *Cache) wanted(ref tracker.Ref) (Query, bool) {
	e := c.entries[ref]
	if e == nil {
		return Query{}, false
	}
	return e.asked, !e.settles(e.asked)
}

// take reduces an object to the answer to the open query about it, and reports whether there is
// one.
func (c *Cache) take(ref tracker.Ref, object *unstructured.Unstructured) bool {
	c.mu.Lock()
	q, open := c.wanted(ref)
	c.mu.Unlock()
	if !open || object.GetUID() != q.UID || watch.Older(object.GetResourceVersion(), q.Version) {
		return false
	}
	var result Result
	if q.Expression != nil {
		result.Status, result.Message = q.Expression.Of(object)
	} else {
		result.Status, result.Message = health.Of(object)
	}
	c.record(q, result, object.GetResourceVersion())
	c.follow(q, result, object)
	return true
}

// record records the result of a query, and calls Changed if it differs. Without a version it
// stands until a read succeeds.
func (c *Cache) record(q Query, result Result, version string) {
	c.mu.Lock()
	e := c.entries[q.Ref]
	if e == nil {
		c.mu.Unlock()
		return
	}
	before := e.told()
	changed := !e.fits(q)
	if result.Status == health.Current || e.uid != q.UID {
		e.pods.end()
	}
	e.answered, e.result, e.uid, e.version, e.expression = true, result, q.UID, version, q.Expression
	e.rule = q.rule
	if e.stale = version == ""; !e.stale {
		e.failures = 0
	}
	changed = changed || e.told() != before
	c.mu.Unlock()
	if changed && c.ctx.Err() == nil {
		c.options.Changed(q.Ref)
	}
}
