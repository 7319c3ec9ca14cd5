package healthcache

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/health"
)

const (
	// readsPerKind is how many objects of a kind are read at a time.
	readsPerKind = 4
	// listThreshold is how many open queries about a kind justify a list, if it has no more than
	// listRatio times as many objects.
	listThreshold, listRatio = 50, 4
	// listPause is the minimum time between two lists of a kind.
	listPause = 10 * time.Second
	// firstPage is the number of objects in the first page of a list. Those after it have as many as
	// fit into pageBytes, to go by the objects before them, but at most maxPage: all objects of a
	// page are in memory at once, in full.
	firstPage, maxPage = 10, 200
	pageBytes          = 1 << 20
	// maxListings is how many kinds are listed at a time.
	maxListings = 2
	// readLimit bounds how long the API server may take to answer.
	readLimit = 30 * time.Second
	// firstRetry and lastRetry bound the delay after a failed read.
	firstRetry, lastRetry = time.Second, 2 * time.Minute
	// maxFailedReads is how many reads in a row may fail before the last answer no longer counts.
	maxFailedReads = 3
)

// lane reads the objects of one kind, so that a kind whose server hangs does not block others. It
// is guarded by the lock of Cache.
type lane struct {
	cache    *Cache
	resource schema.GroupVersionResource
	open     map[tracker.Ref]bool
	// within counts what is open by namespace.
	within  map[string]int
	readers int
	listing bool
	// listed is when the last list ended.
	listed time.Time
}

// lane returns the lane of a kind. The caller holds the lock.
func (c *Cache) lane(resource schema.GroupVersionResource) *lane {
	l := c.lanes[resource]
	if l == nil {
		l = &lane{cache: c, resource: resource, open: make(map[tracker.Ref]bool), within: make(map[string]int)}
		c.lanes[resource] = l
	}
	return l
}

// add schedules a read of an object. The caller holds the lock.
func (l *lane) add(ref tracker.Ref) {
	if !l.open[ref] {
		l.open[ref] = true
		l.within[ref.Namespace]++
	}
	if l.readers < readsPerKind && !l.listing {
		l.readers++
		go l.read()
	}
}

// remove drops an object from those to be read. The caller holds the lock.
func (l *lane) remove(ref tracker.Ref) {
	if !l.open[ref] {
		return
	}
	delete(l.open, ref)
	if l.within[ref.Namespace]--; l.within[ref.Namespace] == 0 {
		delete(l.within, ref.Namespace)
	}
}

// read answers open queries until there are none left. If there are many at once, it lists.
func (l *lane) read() {
	c := l.cache
	for {
		c.mu.Lock()
		ref, found := l.any()
		if !found || l.listing || c.ctx.Err() != nil {
			l.readers--
			c.mu.Unlock()
			return
		}
		if namespace, worth := l.worthListing(ref); worth {
			asked := slices.Collect(maps.Keys(l.open))
			clear(l.open)
			clear(l.within)
			l.listing = true
			c.listings++
			c.mu.Unlock()
			l.list(ref.GroupKind, namespace)
			l.resume(asked)
			continue
		}
		l.remove(ref)
		q, open := c.wanted(ref)
		c.mu.Unlock()
		if open && q.Resource == l.resource { // otherwise it is read as another resource by now
			l.get(q)
		}
	}
}

func (l *lane) any() (tracker.Ref, bool) {
	for ref := range l.open {
		return ref, true
	}
	return tracker.Ref{}, false
}

// worthListing reports whether a list answers the open queries, of which ref is one, with less effort,
// and in which namespace; empty means all namespaces. If as many kinds as may be are being listed,
// this one is read one by one meanwhile, instead of waiting for servers that may hang. It is asked
// before every read, so it must not iterate over all that is open. The caller holds the lock.
func (l *lane) worthListing(ref tracker.Ref) (namespace string, worth bool) {
	if len(l.open) < listThreshold || time.Since(l.listed) < listPause || l.cache.listings == maxListings {
		return "", false
	}
	if len(l.within) == 1 {
		namespace = ref.Namespace
	}
	return namespace, l.cache.options.Count(ref.GroupKind, namespace) <= listRatio*len(l.open)
}

// list answers the open queries from pages of all objects. It stops at the first page that cannot
// be read.
func (l *lane) list(kind schema.GroupKind, namespace string) {
	c := l.cache
	for options := (metav1.ListOptions{Limit: firstPage}); ; {
		objects, next, err := l.page(kind, namespace, options)
		if err != nil {
			return
		}
		for _, object := range objects {
			c.take(tracker.Ref{GroupKind: kind, NamespacedName: types.NamespacedName{
				Namespace: object.GetNamespace(), Name: object.GetName(),
			}}, object)
		}
		if next == "" {
			return
		}
		options = metav1.ListOptions{Limit: nextPage(objects), Continue: next}
	}
}

// nextPage returns how many objects like some others fit into a page.
func nextPage(objects []*unstructured.Unstructured) int64 {
	sample := objects[:min(len(objects), firstPage)]
	if len(sample) == 0 {
		return firstPage
	}
	size := 0
	for _, object := range sample {
		data, err := object.MarshalJSON()
		if err != nil {
			return firstPage
		}
		size += len(data)
	}
	return int64(min(max(pageBytes*len(sample)/max(size, 1), 1), maxPage))
}

// resume continues after a list: objects that the list did not show are read one by one.
func (l *lane) resume(asked []tracker.Ref) {
	c := l.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	l.listing, l.listed = false, time.Now()
	c.listings--
	for _, ref := range asked {
		if _, open := c.wanted(ref); open {
			l.add(ref)
		}
	}
}

// page returns one page of a list and the token of the next one.
func (l *lane) page(kind schema.GroupKind, namespace string, options metav1.ListOptions) (objects []*unstructured.Unstructured, next string, err error) {
	ctx, cancel := context.WithTimeout(l.cache.ctx, readLimit)
	defer cancel()
	if metadataOnly(kind) {
		page, err := l.cache.target.Metadata().Resource(l.resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		for i := range page.Items {
			object, err := fromMetadata(&page.Items[i])
			if err != nil {
				return nil, "", err
			}
			objects = append(objects, object)
		}
		return objects, page.Continue, nil
	}
	page, err := l.cache.target.Dynamic().Resource(l.resource).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	for i := range page.Items {
		objects = append(objects, &page.Items[i])
	}
	return objects, page.GetContinue(), nil
}

// get answers a query by reading the object.
func (l *lane) get(q Query) {
	object, err := l.object(q)
	switch {
	case err == nil:
		if !l.cache.take(q.Ref, object) {
			l.cache.settle(q)
		}
	case watch.IsKindNotFound(err):
		l.cache.options.Missing(l.resource)
		l.failed(q, err)
	case apierrors.IsNotFound(err):
		l.cache.settle(q)
	default:
		l.failed(q, err)
	}
}

func (l *lane) object(q Query) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(l.cache.ctx, readLimit)
	defer cancel()
	if metadataOnly(q.GroupKind) {
		object, err := l.cache.target.Metadata().Resource(l.resource).Namespace(q.Namespace).Get(ctx, q.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return fromMetadata(object)
	}
	return l.cache.target.Dynamic().Resource(l.resource).Namespace(q.Namespace).Get(ctx, q.Name, metav1.GetOptions{})
}

// metadataOnly reports whether objects of a kind are read as metadata only: for kinds without a
// status, metadata is all that shows their health, and Secrets are never read in full.
func metadataOnly(kind schema.GroupKind) bool { return !health.ReportsStatus(kind) }

func fromMetadata(object *metav1.PartialObjectMetadata) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: content}, err
}

// settle drops a query about an object that is gone or was replaced: the watch that saw it will
// notice, and the query will be asked again.
func (c *Cache) settle(q Query) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[q.Ref]; e != nil && e.asked == q {
		e.asked = Query{Resource: q.Resource}
	}
}

// failed schedules another read of an object. Its last answer still counts for a while.
func (l *lane) failed(q Query, err error) {
	c := l.cache
	c.mu.Lock()
	e := c.entries[q.Ref]
	if e == nil || c.ctx.Err() != nil {
		c.mu.Unlock()
		return
	}
	e.failures++
	failures := e.failures
	known := e.fits(q)
	if e.retry != nil {
		e.retry.Stop()
	}
	e.retry = time.AfterFunc(min(firstRetry<<min(failures-1, 10), lastRetry), func() { c.again(q.Ref) })
	c.mu.Unlock()
	moves := watch.IsKindNotFound(err) // to another version, or it is gone
	if !known && !moves || failures > maxFailedReads {
		c.record(q, Result{Status: health.Unknown, Message: fmt.Sprintf("cannot be read: %s", watch.Stable(err))}, "")
	}
}

// again schedules a read of an object if a query about it is still open.
func (c *Cache) again(ref tracker.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q, open := c.wanted(ref); open && c.ctx.Err() == nil {
		c.lane(q.Resource).add(ref)
	}
}
