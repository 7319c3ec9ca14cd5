package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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

const (
	// maxBranchWatches is how many kinds and namespaces of a tree are watched for a page.
	maxBranchWatches = 50
	// refusedAgain is how long it is not tried again to watch what the viewer may not.
	refusedAgain = reviewAgain
	// drawnWithin is how long a page is followed before it says that its tree was not read here. Another replica of the dashboard
	// may have been asked for it.
	drawnWithin = 10 * time.Second
)

// trees knows which pages of trees are open, so that each stream learns what its page has been made of. It is safe for concurrent
// use.
type trees struct {
	again, within time.Duration // see refusedAgain and drawnWithin

	mu   sync.Mutex
	open map[string]map[*branches]bool // by key of the page
}

// treePage is the tree of an object as a viewer sees it.
type treePage struct {
	viewer *viewer
	of     string
}

// key identifies the page by what identifies its viewer. There may be another *viewer of the same user by the time that the page is
// read: only some are remembered.
func (p treePage) key() string {
	return strings.Join(append([]string{p.of, p.viewer.name}, p.viewer.groups...), "\n") // none has one
}

// follow has the stream of a page know of the trees that are shown to its viewer until ctx ends. The page that has opened
// the stream is fetched again when that begins, as a watch of its object does.
func (t *trees) follow(ctx context.Context, page treePage, b *branches) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := page.key()
	b.again, b.within = t.again, t.within
	if t.open == nil {
		t.open = map[string]map[*branches]bool{}
	}
	if t.open[key] == nil {
		t.open[key] = map[*branches]bool{}
	}
	t.open[key][b] = true
	go func() {
		b.run(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open[key], b)
		if len(t.open[key]) == 0 {
			delete(t.open, key)
		}
	}()
}

// shown passes to the streams of a page what a tree that was read for it consists of. sketch is only called if there are some.
func (t *trees) shown(page treePage, sketch func() *tree.Sketch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	followed := t.open[page.key()]
	if len(followed) == 0 {
		return
	}
	drawn := sketch()
	for b := range followed {
		b.shows(drawn)
	}
}

// branches watches, for the stream of a page, what the tree on it consists of: the metadata of each kind in each namespace, with
// the rights of the viewer. A watch is in one of these states:
//
//	Watched ◄──► Refused      the viewer may not watch there: the page says so
//	   ▲
//	   ├───────► Rejected     the API server does not accept the credentials: the page says so
//	   ├───────► Absent       there is no such kind, or no answer: the page says so
//	   ▼
//	Unwatched                 the tree has nothing there (any more), or there are too many: the page says so
//
// Whenever the tree was read, what is not watched is tried once more; where the viewer may not, that was refusedAgain ago at least. It
// keeps nothing of what is watched but the sketch of the tree.
type branches struct {
	stream *stream
	// take takes one watch of the viewer's budget, and returns the function that gives it back; nil if none is left.
	take          func() func()
	again, within time.Duration // see refusedAgain and drawnWithin

	mu      sync.Mutex
	sketch  *tree.Sketch // nil until the tree was shown
	renewed chan struct{}
	watches map[tree.Site]*siteWatch
	left    int // how many sites are not watched because there are too many
}

// siteWatch is the watch of a site. The lock of its branches guards it.
type siteWatch struct {
	stop context.CancelFunc
	what string // what the page calls the site
	// outcome is that of the last request, and ended when that has ended the watch; zero as long as it goes on.
	outcome outcome
	ended   time.Time
}

// outcome is the state of a watch; see branches.
type outcome string

const (
	watched  outcome = ""
	refused  outcome = "Refused"
	rejected outcome = "Rejected"
	absent   outcome = "Absent"
)

// outcomeOf returns what an answer of the API server means for the watch. What is not known to last is asked again by the watch itself.
func outcomeOf(err error) outcome {
	switch {
	case apierrors.IsForbidden(err):
		return refused
	case apierrors.IsUnauthorized(err):
		return rejected
	case fleet.NotListable(err), fleet.TooMuch(err):
		return absent
	}
	return watched
}

// due reports whether the site is to be tried again.
func (w *siteWatch) due(again time.Duration) bool {
	return !w.ended.IsZero() && (w.outcome != refused || time.Since(w.ended) >= again)
}

func newBranches(to *stream, take func() func()) *branches {
	return &branches{stream: to, take: take, renewed: make(chan struct{}, 1), watches: map[tree.Site]*siteWatch{}}
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
	var all sync.WaitGroup
	defer all.Wait()
	undrawn := time.NewTimer(b.within)
	defer undrawn.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-undrawn.C:
			b.mu.Lock()
			b.stream.remark(b.remark())
			b.mu.Unlock()
		case <-b.renewed:
			b.adjust(ctx, &all)
		}
	}
}

// adjust stops the watches that the tree does not need any more, and begins those that it needs now.
func (b *branches) adjust(ctx context.Context, all *sync.WaitGroup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wanted := b.sketch.Sites[:min(len(b.sketch.Sites), maxBranchWatches)]
	for at, w := range b.watches {
		if !slices.Contains(wanted, at) {
			w.stop()
			delete(b.watches, at)
		}
	}
	b.left = len(b.sketch.Sites) - len(wanted)
	for _, at := range wanted {
		if w := b.watches[at]; w == nil || w.due(b.again) {
			b.begin(ctx, at, all)
		}
	}
	b.stream.remark(b.remark())
}

// begin begins the watch of a site, if there is one left. The caller holds the lock.
func (b *branches) begin(ctx context.Context, at tree.Site, all *sync.WaitGroup) {
	before := b.watches[at]
	delete(b.watches, at)
	release := b.take()
	if release == nil {
		b.left++
		return
	}
	cluster := b.sketch.Clusters[at]
	ctx, stop := context.WithCancel(ctx)
	w := &siteWatch{stop: stop, what: siteName(at, cluster)}
	if before != nil {
		w.outcome = before.outcome // until there is another: the page does not flicker
	}
	b.watches[at] = w
	all.Go(func() {
		defer release()
		defer stop()
		b.settle(w, b.watch(ctx, at, cluster, w), time.Now())
	})
}

// settle notes what a request of a watch has led to, and when that has ended it; zero if it goes on.
func (b *branches) settle(w *siteWatch, o outcome, ended time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.outcome, w.ended = o, ended
	b.stream.remark(b.remark())
}

// siteName says what and where a site is.
func siteName(at tree.Site, cluster *fleet.Cluster) string {
	where := at.Kind.String()
	if at.Namespace != "" {
		where += " in namespace " + at.Namespace
	}
	return where + " of " + cluster.Name()
}

func (b *branches) drawn() *tree.Sketch {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sketch
}

// remarks are what the page says of sites that are not watched, in this order.
var remarks = []struct {
	outcome outcome
	text    string
}{
	{refused, "You may not watch %s. "},
	{rejected, "The API server does not accept the credentials to watch %s. "},
	{absent, "There is no such kind, or no answer, to watch %s. "},
}

// remark says which changes the page does not follow; empty if it follows all. The caller holds the lock.
func (b *branches) remark() string {
	said := ""
	if b.sketch == nil {
		said = "The objects of this tree are not followed yet. Where this stays so, several replicas of the dashboard answer this browser, which is to be kept at one. "
	}
	for _, r := range remarks {
		var sites []string
		for _, w := range b.watches {
			if w.outcome == r.outcome {
				sites = append(sites, w.what)
			}
		}
		if len(sites) > 0 {
			said += fmt.Sprintf(r.text, output.Enumerate(sites, "kind"))
		}
	}
	if b.left > 0 {
		said += fmt.Sprintf("%d kinds and namespaces of the tree are more than the dashboard watches for a page, or for you. ", b.left)
	}
	if said == "" {
		return ""
	}
	return said + "Changes there are shown when something else changes, or when you reload the page."
}

// watch watches a site until ctx ends, which is no outcome, or there is one that is not watched.
func (b *branches) watch(ctx context.Context, at tree.Site, cluster *fleet.Cluster, w *siteWatch) outcome {
	source, err := metadataOf(cluster, at)
	if err != nil {
		return cmp.Or(outcomeOf(err), absent)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ending := make(chan outcome, 1)
	answered := func(err error) {
		if o := outcomeOf(err); o != watched {
			select {
			case ending <- o:
			default: // there is an outcome already
			}
			stop()
		}
	}
	silent := logr.Discard()
	cache.NewReflectorWithOptions(relisted(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := source.List(ctx, o)
			answered(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			changes, err := source.Watch(ctx, o)
			answered(err)
			if err == nil { // who may list may still not watch
				b.settle(w, watched, time.Time{})
			}
			return changes, err
		},
	}, listing{}), &metav1.PartialObjectMetadata{}, &twig{b, at}, cache.ReflectorOptions{Logger: &silent}).RunWithContext(ctx)
	select {
	case o := <-ending:
		return o
	default:
		return watched
	}
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

// twig is what a watch of a site tells of: it has the page fetched again for what concerns its tree, and keeps nothing.
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
