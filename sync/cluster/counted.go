package cluster

import (
	"context"
	"runtime"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/rewind"
)

// counter counts what is listed and watched through one client, until that is garbage collected.
type counter struct {
	ledger *ledger
	what   string

	once sync.Once
	of   *account
}

// account returns the account of the client, which costs nothing until it lists or watches.
func (c *counter) account() *account {
	c.once.Do(func() {
		c.of = c.ledger.account(c.what, 0)
		runtime.AddCleanup(c, (*account).clear, c.of)
	})
	return c.of
}

// list counts the objects of a page that was received.
func list[L apiruntime.Object](a *account, o metav1.ListOptions, page L, err error) (L, error) {
	if err == nil {
		err = a.list(page, o.Continue == "")
	}
	return page, shortened(err)
}

// countedWatch passes on the events of a watch that do not exceed a limit.
type countedWatch struct {
	watch.Interface
	events chan watch.Event
	done   chan struct{}
	stop   func()
	// by is the counter, which must last as long as the watch; nil where it lasts longer anyway.
	by *counter
}

// watching returns a watch that was just begun as one whose events are counted.
func watching(a *account, by *counter, o metav1.ListOptions, w watch.Interface) watch.Interface {
	a.watched(o.SendInitialEvents != nil && *o.SendInitialEvents)
	c := &countedWatch{Interface: w, events: make(chan watch.Event), done: make(chan struct{}), by: by}
	c.stop = sync.OnceFunc(func() { close(c.done) })
	go c.run(a)
	return c
}

func (c *countedWatch) run(a *account) {
	defer runtime.KeepAlive(c.by)
	defer close(c.events)
	for e := range c.Interface.ResultChan() {
		if a.event(e) != nil {
			continue
		}
		shortenEvent(e)
		select {
		case c.events <- e:
		case <-c.done:
			return
		}
	}
}

// ResultChan implements watch.Interface.
func (c *countedWatch) ResultChan() <-chan watch.Event { return c.events }

// Stop implements watch.Interface.
func (c *countedWatch) Stop() {
	c.stop()
	c.Interface.Stop()
}

// countedMetadata is a client whose lists and watches are counted.
type countedMetadata struct {
	metadata.Interface
	ledger *ledger
}

// Resource implements metadata.Interface.
func (m countedMetadata) Resource(r schema.GroupVersionResource) metadata.Getter {
	all := m.Interface.Resource(r)
	c := &counter{ledger: m.ledger, what: r.GroupResource().String()}
	return metadataGetter{metadataResource{all, c}, all}
}

type metadataGetter struct {
	metadataResource
	getter metadata.Getter
}

// Namespace implements metadata.Getter.
func (g metadataGetter) Namespace(name string) metadata.ResourceInterface {
	if name == "" {
		return g.metadataResource
	}
	return metadataResource{g.getter.Namespace(name), &counter{ledger: g.ledger, what: g.what}}
}

type metadataResource struct {
	metadata.ResourceInterface
	*counter
}

// List implements metadata.ResourceInterface.
func (r metadataResource) List(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	page, err := r.ResourceInterface.List(ctx, o)
	return list(r.account(), o, page, err)
}

// Watch implements metadata.ResourceInterface.
func (r metadataResource) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := r.ResourceInterface.Watch(ctx, o)
	if err != nil {
		return nil, shortened(err)
	}
	return watching(r.account(), r.counter, o, w), nil
}

// countedDynamic is a client whose lists and watches are counted.
type countedDynamic struct {
	dynamic.Interface
	ledger *ledger
}

// Resource implements dynamic.Interface.
func (d countedDynamic) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	all := d.Interface.Resource(r)
	c := &counter{ledger: d.ledger, what: r.GroupResource().String()}
	return dynamicGetter{dynamicResource{all, c}, all}
}

type dynamicGetter struct {
	dynamicResource
	getter dynamic.NamespaceableResourceInterface
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (g dynamicGetter) Namespace(name string) dynamic.ResourceInterface {
	if name == "" {
		return g.dynamicResource
	}
	return dynamicResource{g.getter.Namespace(name), &counter{ledger: g.ledger, what: g.what}}
}

type dynamicResource struct {
	dynamic.ResourceInterface
	*counter
}

// List implements dynamic.ResourceInterface.
func (r dynamicResource) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	page, err := r.ResourceInterface.List(ctx, o)
	return list(r.account(), o, page, err)
}

// Watch implements dynamic.ResourceInterface.
func (r dynamicResource) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := r.ResourceInterface.Watch(ctx, o)
	if err != nil {
		return nil, shortened(err)
	}
	return watching(r.account(), r.counter, o, w), nil
}

// informer returns an informer whose objects are counted.
func (l *ledger) informer(
	from toolscache.ListerWatcher, object apiruntime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	what, most := "the objects of a cache", 0
	if _, installations := object.(*v1alpha1.ApplicationInstallation); installations {
		what, most = "ApplicationInstallations", maxInstallations
	}
	a, source := l.account(what, most), rewind.Source(toolscache.ToListerWatcherWithContext(from), l.rewound)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
			page, err := source.ListWithContext(ctx, o)
			return list(a, o, page, err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := source.WatchWithContext(ctx, o)
			if err != nil {
				return nil, shortened(err)
			}
			return watching(a, nil, o, w), nil
		},
	}, object, resync, indexers)
}
