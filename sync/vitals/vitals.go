package vitals

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"waybill.dev/waybill/sync/census"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/watch"
)

// Target is one API server accessed with one identity.
type Target interface {
	Metadata() metadata.Interface
	Dynamic() dynamic.Interface
}

// Options of Vitals. All are required.
type Options struct {
	// Changed is called with an object whose health has become known or has changed. It must return
	// at once.
	Changed func(census.Ref)
	// Count returns how many objects of a kind there are in a namespace; empty means all
	// namespaces. It decides between reading one by one and reading in pages.
	Count func(kind schema.GroupKind, namespace string) int
	// Missing is called with a resource that the API server no longer serves.
	Missing func(schema.GroupVersionResource)
}

// Question asks for the health of an object.
type Question struct {
	census.Ref
	// Resource is the resource of the kind in the API server.
	Resource schema.GroupVersionResource
	UID      types.UID
	// Version is the minimum resource version of the object that the answer must reflect.
	Version string
	// Expression decides the health; nil means health.Of.
	Expression *health.Expression
}

// Answer is the health of an object.
type Answer struct {
	Status  health.Status
	Message string
}

// Vitals remembers the health of objects. It is safe for concurrent use.
type Vitals struct {
	ctx     context.Context
	target  Target
	options Options
	// listing bounds how many kinds are read in pages at a time, and so memory.
	listing chan struct{}

	mu      sync.Mutex
	entries map[census.Ref]*entry
	lanes   map[schema.GroupVersionResource]*lane
}

// entry is what is known about one object. It is guarded by the lock of Vitals.
type entry struct {
	// asked is the last question.
	asked Question
	// answered is true if answer is set: to a question about uid, at version, by expression.
	answered   bool
	answer     Answer
	uid        types.UID
	version    string
	expression *health.Expression
	// stale is true if answer only says that the object cannot be read.
	stale bool
	// failures counts failed attempts in a row.
	failures int
}

// fits reports whether answer answers a question, apart from its version.
func (e *entry) fits(q Question) bool {
	return e.answered && e.uid == q.UID && e.expression == q.Expression
}

// settles reports whether answer answers a question.
func (e *entry) settles(q Question) bool {
	return e.fits(q) && !e.stale && !watch.Older(e.version, q.Version)
}

// New returns the Vitals of an API server. Reading ends with ctx.
func New(ctx context.Context, target Target, options Options) *Vitals {
	return &Vitals{
		ctx:     ctx,
		target:  target,
		options: options,
		listing: make(chan struct{}, maxListings),
		entries: make(map[census.Ref]*entry),
		lanes:   make(map[schema.GroupVersionResource]*lane),
	}
}

// Ask returns the last known health of an object, or false if none is known. If it is older than
// the question, the object is read in the background, and Changed is called if its health is then
// different.
func (v *Vitals) Ask(q Question) (Answer, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.entries[q.Ref]
	if e == nil {
		e = &entry{}
		v.entries[q.Ref] = e
	}
	if !e.settles(q) && e.asked != q { // otherwise it is being read, or will be read again later
		e.asked = q
		v.lane(q.Resource).add(q.Ref)
	}
	return e.answer, e.fits(q)
}

// Forget drops what is known about an object.
func (v *Vitals) Forget(ref census.Ref) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[ref]; e != nil {
		v.lane(e.asked.Resource).remove(ref)
		delete(v.entries, ref)
	}
}

// wanted returns the question that is open about an object, if any. The caller holds the lock.
func (v *Vitals) wanted(ref census.Ref) (Question, bool) {
	e := v.entries[ref]
	if e == nil {
		return Question{}, false
	}
	return e.asked, !e.settles(e.asked)
}

// take reduces an object to the answer to the open question about it, and reports whether there is
// one.
func (v *Vitals) take(ref census.Ref, object *unstructured.Unstructured) bool {
	v.mu.Lock()
	q, open := v.wanted(ref)
	v.mu.Unlock()
	if !open || object.GetUID() != q.UID || watch.Older(object.GetResourceVersion(), q.Version) {
		return false
	}
	var answer Answer
	if q.Expression != nil {
		answer.Status, answer.Message = q.Expression.Of(object)
	} else {
		answer.Status, answer.Message = health.Of(object)
	}
	v.answer(q, answer, object.GetResourceVersion())
	return true
}

// answer records the answer to a question, and calls Changed if it differs. Without a version it
// stands until a read succeeds.
func (v *Vitals) answer(q Question, answer Answer, version string) {
	v.mu.Lock()
	e := v.entries[q.Ref]
	if e == nil {
		v.mu.Unlock()
		return
	}
	changed := !e.fits(q) || e.answer != answer
	e.answered, e.answer, e.uid, e.version, e.expression = true, answer, q.UID, version, q.Expression
	if e.stale = version == ""; !e.stale {
		e.failures = 0
	}
	v.mu.Unlock()
	if changed && v.ctx.Err() == nil {
		v.options.Changed(q.Ref)
	}
}
