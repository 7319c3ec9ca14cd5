package vitals

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

	"waybill.dev/waybill/sync/census"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/watch"
)

const (
	// readsPerKind is how many objects of a kind are read at a time.
	readsPerKind = 4
	// listThreshold is how many open questions about a kind justify a list, if it has no more than
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
// is guarded by the lock of Vitals.
type lane struct {
	vitals   *Vitals
	resource schema.GroupVersionResource
	open     map[census.Ref]bool
	readers  int
	listing  bool
	// listed is when the last list ended.
	listed time.Time
}

// lane returns the lane of a kind. The caller holds the lock.
func (v *Vitals) lane(resource schema.GroupVersionResource) *lane {
	l := v.lanes[resource]
	if l == nil {
		l = &lane{vitals: v, resource: resource, open: make(map[census.Ref]bool)}
		v.lanes[resource] = l
	}
	return l
}

// add schedules a read of an object. The caller holds the lock.
func (l *lane) add(ref census.Ref) {
	l.open[ref] = true
	if l.readers < readsPerKind && !l.listing {
		l.readers++
		go l.read()
	}
}

func (l *lane) remove(ref census.Ref) { delete(l.open, ref) }

// read answers open questions until there are none left. If there are many at once, it lists.
func (l *lane) read() {
	v := l.vitals
	for {
		v.mu.Lock()
		ref, found := l.any()
		if !found || l.listing || v.ctx.Err() != nil {
			l.readers--
			v.mu.Unlock()
			return
		}
		namespace, worth := l.worthListing()
		if worth {
			asked := slices.Collect(maps.Keys(l.open))
			clear(l.open)
			l.listing = true
			v.mu.Unlock()
			l.list(ref.GroupKind, namespace)
			l.resume(asked)
			continue
		}
		delete(l.open, ref)
		q, open := v.wanted(ref)
		v.mu.Unlock()
		if open && q.Resource == l.resource { // otherwise it is read as another resource by now
			l.get(q)
		}
	}
}

func (l *lane) any() (census.Ref, bool) {
	for ref := range l.open {
		return ref, true
	}
	return census.Ref{}, false
}

// worthListing reports whether a list answers the open questions with less effort, and in which
// namespace; empty means all namespaces. The caller holds the lock.
func (l *lane) worthListing() (namespace string, worth bool) {
	if len(l.open) < listThreshold || time.Since(l.listed) < listPause {
		return "", false
	}
	var kind schema.GroupKind
	first := true
	for ref := range l.open {
		if first {
			namespace, kind, first = ref.Namespace, ref.GroupKind, false
		}
		if ref.Namespace != namespace {
			namespace = ""
			break
		}
	}
	return namespace, l.vitals.options.Count(kind, namespace) <= listRatio*len(l.open)
}

// list answers the open questions from pages of all objects. It stops at the first page that cannot
// be read.
func (l *lane) list(kind schema.GroupKind, namespace string) {
	v := l.vitals
	v.listing <- struct{}{}
	defer func() { <-v.listing }()
	for options := (metav1.ListOptions{Limit: firstPage}); ; {
		objects, next, err := l.page(kind, namespace, options)
		if err != nil {
			return
		}
		for _, object := range objects {
			v.take(census.Ref{GroupKind: kind, NamespacedName: types.NamespacedName{
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
func (l *lane) resume(asked []census.Ref) {
	v := l.vitals
	v.mu.Lock()
	defer v.mu.Unlock()
	l.listing, l.listed = false, time.Now()
	for _, ref := range asked {
		if _, open := v.wanted(ref); open {
			l.add(ref)
		}
	}
}

// page returns one page of a list and the token of the next one.
func (l *lane) page(kind schema.GroupKind, namespace string, options metav1.ListOptions) (objects []*unstructured.Unstructured, next string, err error) {
	ctx, cancel := context.WithTimeout(l.vitals.ctx, readLimit)
	defer cancel()
	if metadataOnly(kind) {
		page, err := l.vitals.target.Metadata().Resource(l.resource).Namespace(namespace).List(ctx, options)
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
	page, err := l.vitals.target.Dynamic().Resource(l.resource).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	for i := range page.Items {
		objects = append(objects, &page.Items[i])
	}
	return objects, page.GetContinue(), nil
}

// get answers a question by reading the object.
func (l *lane) get(q Question) {
	object, err := l.object(q)
	switch {
	case err == nil:
		if !l.vitals.take(q.Ref, object) {
			l.vitals.settle(q)
		}
	case watch.IsKindNotFound(err):
		l.vitals.options.Missing(l.resource)
		l.failed(q, err)
	case apierrors.IsNotFound(err):
		l.vitals.settle(q)
	default:
		l.failed(q, err)
	}
}

func (l *lane) object(q Question) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(l.vitals.ctx, readLimit)
	defer cancel()
	if metadataOnly(q.GroupKind) {
		object, err := l.vitals.target.Metadata().Resource(l.resource).Namespace(q.Namespace).Get(ctx, q.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return fromMetadata(object)
	}
	return l.vitals.target.Dynamic().Resource(l.resource).Namespace(q.Namespace).Get(ctx, q.Name, metav1.GetOptions{})
}

// metadataOnly reports whether objects of a kind are read as metadata only: for kinds without a
// status, metadata is all that shows their health, and Secrets are never read in full (C39).
func metadataOnly(kind schema.GroupKind) bool { return !health.ReportsStatus(kind) }

func fromMetadata(object *metav1.PartialObjectMetadata) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: content}, err
}

// settle drops a question about an object that is gone or was replaced: the watch that saw it will
// notice, and the question will be asked again.
func (v *Vitals) settle(q Question) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[q.Ref]; e != nil && e.asked == q {
		e.asked = Question{Resource: q.Resource}
	}
}

// failed schedules another read of an object. Its last answer still counts for a while.
func (l *lane) failed(q Question, err error) {
	v := l.vitals
	v.mu.Lock()
	e := v.entries[q.Ref]
	if e == nil || v.ctx.Err() != nil {
		v.mu.Unlock()
		return
	}
	e.failures++
	failures := e.failures
	known := e.fits(q)
	v.mu.Unlock()
	moves := watch.IsKindNotFound(err) // to another version, or it is gone
	if !known && !moves || failures > maxFailedReads {
		v.answer(q, Answer{Status: health.Unknown, Message: fmt.Sprintf("cannot be read: %s", watch.Stable(err))}, "")
	}
	time.AfterFunc(min(firstRetry<<min(failures-1, 10), lastRetry), func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if now, open := v.wanted(q.Ref); open && now.Resource == l.resource && v.ctx.Err() == nil {
			l.add(q.Ref)
		}
	})
}
