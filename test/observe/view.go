package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Of selects the objects of a View: those of one kind, in one namespace, or in all if it is empty,
// that match the label selector, if there is one.
type Of struct {
	schema.GroupVersionResource
	Namespace string
	Selector  string
}

// Object is an object in a View.
type Object = unstructured.Unstructured

// Match reports whether an object has the expected state. It is called once per state of the
// object, with the view's lock held, and must not modify the object.
type Match func(*Object) bool

// Any matches every object.
func Any(*Object) bool { return true }

// Named matches the object with that name if and matches it, too.
func Named(name string, and Match) Match {
	return func(o *Object) bool { return o.GetName() == name && and(o) }
}

// View is a live view of objects.
type View struct {
	of     Of
	client dynamic.ResourceInterface

	mu      sync.Mutex
	objects map[types.NamespacedName]*Object
	waiters map[*waiter]struct{}
	err     error // why the view shows nothing any more
}

type waiter struct {
	match   Match
	matched map[types.NamespacedName]bool
	want    int
	done    chan struct{} // closed, once, when want objects match
	over    bool
}

// Open lists the objects and watches them until ctx ends.
func Open(ctx context.Context, config *rest.Config, of Of) (*View, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", of.Resource, err)
	}
	v := &View{
		of:      of,
		client:  client.Resource(of.GroupVersionResource).Namespace(of.Namespace),
		objects: map[types.NamespacedName]*Object{},
		waiters: map[*waiter]struct{}{},
	}
	events, err := v.begin(ctx)
	if err != nil {
		return nil, err
	}
	go v.follow(ctx, events)
	return v, nil
}

// Until returns nil as soon as exactly want objects match at the same time. If ctx ends first, the
// error says how many did, and quotes the conditions of others.
func (v *View) Until(ctx context.Context, want int, match Match) error {
	w := &waiter{match: match, matched: map[types.NamespacedName]bool{}, want: want, done: make(chan struct{})}
	v.mu.Lock()
	if v.err != nil {
		defer v.mu.Unlock()
		return v.err
	}
	for key, o := range v.objects {
		w.see(key, o)
	}
	w.check()
	v.waiters[w] = struct{}{}
	v.mu.Unlock()

	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.waiters, w)
	}()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		v.mu.Lock()
		defer v.mu.Unlock()
		return errors.Join(fmt.Errorf("wait for %s: %d of %d are there%s: %w", v.of.Resource, len(w.matched), want, v.others(w), context.Cause(ctx)), v.err)
	}
}

// maxOthers is how many objects an error quotes.
const maxOthers = 3

// others quotes the condition Ready of objects that do not match. The caller holds the lock.
func (v *View) others(w *waiter) string {
	var said []string
	for key, o := range v.objects {
		if status, reason, message := Condition(o, "Ready"); status != "" && !w.matched[key] {
			said = append(said, fmt.Sprintf("; %s: Ready=%s %s: %s", key, status, reason, message))
		}
	}
	slices.Sort(said)
	return strings.Join(said[:min(len(said), maxOthers)], "")
}

// Get returns a copy of an object, or nil if it does not exist.
func (v *View) Get(namespace, name string) *Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	if o := v.objects[types.NamespacedName{Namespace: namespace, Name: name}]; o != nil {
		return o.DeepCopy()
	}
	return nil
}

// All returns copies of all objects, in no particular order.
func (v *View) All() []*Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]*Object, 0, len(v.objects))
	for _, o := range v.objects {
		all = append(all, o.DeepCopy())
	}
	return all
}

// see updates the waiter with the state of one object; nil means that it is gone.
func (w *waiter) see(key types.NamespacedName, o *Object) {
	if o != nil && w.match(o) {
		w.matched[key] = true
		return
	}
	delete(w.matched, key)
}

func (w *waiter) check() {
	if !w.over && len(w.matched) == w.want {
		w.over = true
		close(w.done)
	}
}

// begin lists the objects and starts a watch from there.
func (v *View) begin(ctx context.Context) (watch.Interface, error) {
	list, err := v.client.List(ctx, metav1.ListOptions{LabelSelector: v.of.Selector})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", v.of.Resource, err)
	}
	v.replace(list.Items)
	// It resumes where it was when the connection breaks.
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = v.of.Selector
			return v.client.Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", v.of.Resource, err)
	}
	return events, nil
}

// follow processes events until ctx ends, and lists again if the API server no longer has the
// events since.
func (v *View) follow(ctx context.Context, events watch.Interface) {
	for {
		err := v.take(events)
		events.Stop()
		if ctx.Err() != nil {
			return
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			events, err = v.begin(ctx)
		}
		if err != nil {
			v.mu.Lock()
			v.err = fmt.Errorf("watch %s: %w", v.of.Resource, err)
			v.mu.Unlock()
			return
		}
	}
}

// take processes events until there are no more. It returns the server's error, if it sent one.
func (v *View) take(events watch.Interface) error {
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified:
			v.put(event.Object.(*Object), false)
		case watch.Deleted:
			v.put(event.Object.(*Object), true)
		case watch.Error:
			return apierrors.FromObject(event.Object)
		}
	}
	return errors.New("the watch ended")
}

func (v *View) put(o *Object, gone bool) {
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.objects[key] = o
	if gone {
		delete(v.objects, key)
		o = nil
	}
	for w := range v.waiters {
		w.see(key, o)
		w.check()
	}
}

func (v *View) replace(items []Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.objects)
	for i := range items {
		v.objects[types.NamespacedName{Namespace: items[i].GetNamespace(), Name: items[i].GetName()}] = &items[i]
	}
	for w := range v.waiters {
		clear(w.matched)
		for key, o := range v.objects {
			w.see(key, o)
		}
		w.check()
	}
}
