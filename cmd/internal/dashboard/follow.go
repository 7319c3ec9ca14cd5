package dashboard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/sync/cluster/rewind"
)

// state of a watch; see the package documentation.
type state string

const (
	connecting state = "Connecting"
	live       state = "Live"
	lost       state = "Lost"
	forbidden  state = "Forbidden"
)

// standing is what a watch can say of itself.
type standing struct {
	State state
	// Namespace that alone is watched, because the user may not read all; empty for all.
	Namespace string
	// Since is when it was lost; zero while it is not.
	Since time.Time
	// Message says why it is lost or forbidden, and Err is that.
	Message string
	Err     error
}

// follow is the watch of one kind.
type follow struct {
	// kind and resource of what is watched; empty if it is not of the inventory.
	kind, resource string

	client client.WithWatch
	list   func() client.ObjectList
	// fallback is the namespace to read if the user may not read all; empty for none.
	fallback string
	// select narrows the watch down, besides its namespace.
	selects fields.Selector
	// changed is called when an object has changed, and without a name when the state has. It must not block.
	changed func(namespace, name string)
	// keep returns what is kept of an object.
	keep cache.TransformFunc

	informer cache.SharedIndexInformer

	mu       sync.Mutex
	standing standing
}

func newFollow(c client.WithWatch, object client.Object, list func() client.ObjectList, changed func(namespace, name string)) *follow {
	f := &follow{client: c, list: list, changed: changed, keep: ctrlcache.TransformStripManagedFields(), standing: standing{State: connecting}}
	source := relisted(&cache.ListWatch{ListWithContextFunc: f.read, WatchFuncWithContext: f.watch}, c)
	f.informer = cache.NewSharedIndexInformer(source, object, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	return f
}

// relisted returns a source that is listed again where its API server went back in time: a watch that goes on from what was seen
// before would show nothing. by is the client of the source.
func relisted(source *cache.ListWatch, by any) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(rewind.Source(source, func(error) {}), by) // nothing else is remembered
}

// listing is a client of a user cluster, which is not asked to begin a watch with all objects: what such a watch sends counts as
// held as long as it lasts, as it is the server that says when these have come.
type listing struct{ client.WithWatch }

// IsWatchListSemanticsUnSupported has reflectors list.
func (listing) IsWatchListSemanticsUnSupported() bool { return true }

// run watches until ctx ends.
func (f *follow) run(ctx context.Context) error {
	if err := f.informer.SetTransform(f.keep); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if err := f.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return fmt.Errorf("watch: %w", err) // the state says what failed
	}
	notify := func(changed any) {
		if gone, ok := changed.(cache.DeletedFinalStateUnknown); ok {
			changed = gone.Obj
		}
		if object, ok := changed.(client.Object); ok {
			f.changed(object.GetNamespace(), object.GetName())
		}
	}
	_, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(_, o any) { notify(o) }, DeleteFunc: notify,
	})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	f.informer.RunWithContext(ctx)
	return nil
}

// read lists everything; of one namespace, if no more is allowed.
func (f *follow) read(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := f.list()
	err := f.client.List(ctx, list, f.options(o))
	if apierrors.IsForbidden(err) && f.narrow() {
		err = f.client.List(ctx, list, f.options(o))
	}
	f.answers(ctx, err)
	return list, err
}

func (f *follow) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := f.client.Watch(ctx, f.list(), f.options(o))
	if apierrors.IsForbidden(err) && f.narrow() {
		w, err = f.client.Watch(ctx, f.list(), f.options(o))
	}
	f.answers(ctx, err)
	return w, err
}

func (f *follow) options(raw metav1.ListOptions) *client.ListOptions {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &client.ListOptions{Raw: &raw, Namespace: f.standing.Namespace, FieldSelector: f.selects}
}

// narrow has the watch go on in one namespace, and reports whether it did not before.
func (f *follow) narrow() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fallback == "" || f.standing.Namespace == f.fallback {
		return false
	}
	f.standing.Namespace = f.fallback
	return true
}

// answers sets the state by the result of a request, unless that was given up because the watch has ended: it was what it was.
func (f *follow) answers(ctx context.Context, err error) {
	if ctx.Err() == nil {
		f.answered(err)
	}
}

// answered sets the state by the result of a request.
func (f *follow) answered(err error) {
	f.mu.Lock()
	before := f.standing
	f.standing.Err = err
	switch {
	case err == nil, apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		f.standing.State, f.standing.Message, f.standing.Since = live, "", time.Time{}
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		f.standing.State, f.standing.Message, f.standing.Since = forbidden, err.Error(), time.Time{}
	default:
		if f.standing.State != lost {
			f.standing.Since = time.Now()
		}
		f.standing.State, f.standing.Message = lost, err.Error()
	}
	after := f.standing
	f.mu.Unlock()
	if before.State != after.State {
		f.changed("", "")
	}
}

// stands returns what the watch says of itself.
func (f *follow) stands() standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.standing
}

// namespaces returns those that have objects, none for objects without.
func (f *follow) namespaces() []string {
	return slices.DeleteFunc(f.informer.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex), func(n string) bool { return n == "" })
}

// objects returns what is known, in no order; nothing where the user may not read it any more. They
// must not be modified.
func objects[T client.Object](f *follow) []T {
	if f.stands().State == forbidden {
		return nil
	}
	known := f.informer.GetStore().List()
	all := make([]T, 0, len(known))
	for _, one := range known {
		if object, ok := one.(T); ok {
			all = append(all, object)
		}
	}
	return all
}
