package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/cmd/internal/tree"
)

// maxBranchWatches is how many kinds and namespaces of a tree are watched for a page.
const maxBranchWatches = 50

// trees knows which pages of trees are open, so that each stream learns what its page has been made of. It is safe for concurrent
// use.
type trees struct {
	mu   sync.Mutex
	open map[treePage]map[*branches]bool
}

// treePage is the tree of an object as a viewer sees it.
type treePage struct {
	viewer *viewer
	of     string
}

// follow has the stream of a page know of the trees that are shown to its viewer until ctx ends. The page that has opened
// the stream is fetched again when that begins, as a watch of its object does.
func (t *trees) follow(ctx context.Context, page treePage, b *branches) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[treePage]map[*branches]bool{}
	}
	if t.open[page] == nil {
		t.open[page] = map[*branches]bool{}
	}
	t.open[page][b] = true
	go func() {
		b.run(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open[page], b)
		if len(t.open[page]) == 0 {
			delete(t.open, page)
		}
	}()
}

// shown passes to the streams of a page what a tree that was read for it consists of. sketch is only called if there are some.
func (t *trees) shown(page treePage, sketch func() *tree.Sketch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open[page]) == 0 {
		return
	}
	drawn := sketch()
	for b := range t.open[page] {
		b.shows(drawn)
	}
}

// branches watches, for the stream of a page, what the tree on it consists of: the metadata of each kind in each namespace, with
// the rights of the viewer. A watch is in one of these states:
//
//	Watched ──► Refused       the viewer may not watch there: the page says so
//	   ▲
//	   ▼
//	Unwatched                 the tree has nothing there (any more), or there are too many: the page says so
//
// It keeps nothing of what is watched but the sketch of the tree.
type branches struct {
	stream *stream
	// take takes one watch of the viewer's budget, and returns the function that gives it back; nil if none is left.
	take func() func()

	mu      sync.Mutex
	sketch  *tree.Sketch // nil until the tree was shown
	renewed chan struct{}
	refused map[tree.Site]string // what the page calls it
	left    int                  // how many sites are not watched because there are too many
}

func newBranches(to *stream, take func() func()) *branches {
	return &branches{stream: to, take: take, renewed: make(chan struct{}, 1), refused: map[tree.Site]string{}}
}

// shows has the watches follow another tree. Where that has other objects than the one before, some may have changed between the
// two unnoticed: the page is fetched once more.
func (b *branches) shows(sketch *tree.Sketch) {
	b.mu.Lock()
	before := b.sketch
	b.sketch = sketch
	b.mu.Unlock()
	if before != nil && !before.SameObjects(sketch) {
		b.stream.tell("", "")
	}
	select {
	case b.renewed <- struct{}{}:
	default: // it is awake already
	}
}

// run watches until ctx ends.
func (b *branches) run(ctx context.Context) {
	ctx = klog.NewContext(ctx, logr.Discard()) // a cluster that does not answer is shown to who looks at it
	running := map[tree.Site]context.CancelFunc{}
	var all sync.WaitGroup
	defer all.Wait()
	defer func() {
		for _, stop := range running {
			stop()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.renewed:
			b.adjust(ctx, running, &all)
		}
	}
}

// adjust stops the watches that the tree does not need any more, and begins those that it needs now.
func (b *branches) adjust(ctx context.Context, running map[tree.Site]context.CancelFunc, all *sync.WaitGroup) {
	sketch := b.drawn()
	wanted := sketch.Sites[:min(len(sketch.Sites), maxBranchWatches)]
	for at, stop := range running {
		if !slices.Contains(wanted, at) {
			stop()
			delete(running, at)
			b.forget(at)
		}
	}
	left := len(sketch.Sites) - len(wanted)
	for _, at := range wanted {
		if running[at] != nil {
			continue
		}
		release := b.take()
		if release == nil {
			left++
			continue
		}
		watching, stop := context.WithCancel(ctx)
		running[at] = stop
		all.Go(func() {
			defer release()
			b.watch(watching, at, sketch.Clusters[at])
		})
	}
	b.mu.Lock()
	b.left = left
	b.mu.Unlock()
	b.stream.remark(b.remark())
}

// forget forgets whether a site may be watched: it may be asked again.
func (b *branches) forget(at tree.Site) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.refused, at)
}

func (b *branches) drawn() *tree.Sketch {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sketch
}

// remark says which changes the page does not follow; empty if it follows all.
func (b *branches) remark() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := ""
	if len(b.refused) > 0 {
		said = "You may not watch " + output.Enumerate(slices.Collect(maps.Values(b.refused)), "kind") + ". "
	}
	if b.left > 0 {
		said += fmt.Sprintf("%d kinds and namespaces of the tree are more than the dashboard watches for a page, or for you. ", b.left)
	}
	if said == "" {
		return ""
	}
	return said + "Changes there are shown when something else changes, or when you reload the page."
}

// watch watches a site until ctx ends or the API server refuses it.
func (b *branches) watch(ctx context.Context, at tree.Site, cluster *fleet.Cluster) {
	source, err := metadataOf(cluster, at)
	if err != nil {
		return // the tree says that the cluster does not answer, or has no such kind
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answered := func(err error) {
		switch {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			b.refuse(at, cluster)
			stop()
		case fleet.NotListable(err):
			stop() // there is nothing to watch
		}
	}
	silent := logr.Discard()
	cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := source.List(ctx, o)
			answered(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := source.Watch(ctx, o)
			answered(err)
			return w, err
		},
	}, &metav1.PartialObjectMetadata{}, &twig{b, at}, cache.ReflectorOptions{Logger: &silent}).RunWithContext(ctx)
}

func metadataOf(cluster *fleet.Cluster, at tree.Site) (metadata.ResourceInterface, error) {
	mapper, err := cluster.Mapper()
	if err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(at.Kind)
	if err != nil {
		return nil, err
	}
	c, err := cluster.StreamingMetadata()
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.Resource(mapping.Resource), nil
	}
	return c.Resource(mapping.Resource).Namespace(at.Namespace), nil
}

// refuse notes that a site is not watched.
func (b *branches) refuse(at tree.Site, cluster *fleet.Cluster) {
	where := at.Kind.String()
	if at.Namespace != "" {
		where += " in namespace " + at.Namespace
	}
	b.mu.Lock()
	b.refused[at] = where + " of " + cluster.Name()
	b.mu.Unlock()
	b.stream.remark(b.remark())
}

// twig is the event handler of the watch of a site: it has the page fetched again for what concerns its tree. It is a store
// that keeps nothing.
type twig struct {
	*branches
	at tree.Site
}

func (t *twig) touched(changed any) error {
	if object, ok := changed.(metav1.Object); ok && t.drawn().Concerns(t.at, object) {
		t.stream.tell("", "")
	}
	return nil
}

// Add implements cache.ReflectorStore, as the others do.
func (t *twig) Add(object any) error { return t.touched(object) }

// Update is called for an object that has changed.
func (t *twig) Update(object any) error { return t.touched(object) }

// Delete is called for an object that was deleted.
func (t *twig) Delete(object any) error { return t.touched(object) }

// Replace is called with all objects, when the watch begins and after it was interrupted.
func (t *twig) Replace(list []any, _ string) error {
	objects := make([]metav1.Object, 0, len(list))
	for _, one := range list {
		if object, ok := one.(metav1.Object); ok {
			objects = append(objects, object)
		}
	}
	if t.drawn().Outdated(t.at, objects) {
		t.stream.tell("", "")
	}
	return nil
}

// Resync does nothing: nothing is kept.
func (t *twig) Resync() error { return nil }
