package get

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
)

// changes are the changes of one reference in one cluster, as they are printed.
type changes struct {
	rest rest.Interface
	kind kinds.Kind
	ref  kinds.Reference
	q    query

	// accept is the format in which the API server sends them.
	accept string
	// required says that it is an error if there is no object of the name.
	required bool
}

// show prints changes of one kind: an event of a watch, or the objects of a list, which are Added.
type show func(kind watch.EventType, found []version) error

// follow prints what changes in the clusters until ctx ends, after what there is. With several clusters,
// one that fails is a warning.
func (o *options) follow(ctx context.Context, clusters []*fleet.Cluster, q query) error {
	if err := o.watchable(q); err != nil {
		return err
	}
	to, err := o.newSink(q.refs[0].Kind)
	if err != nil {
		return err
	}
	errs := make([]error, len(clusters))
	var all sync.WaitGroup
	var warning sync.Mutex // one at a time writes to the error output
	for i, cluster := range clusters {
		all.Go(func() {
			errs[i] = o.followOne(ctx, cluster, q, to)
			if errs[i] != nil && ctx.Err() == nil && len(clusters) > 1 {
				warning.Lock()
				defer warning.Unlock()
				o.env.Warnf("cluster %s is missing: %s", cluster.Name(), errs[i])
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil // the user has seen enough
	}
	return errors.Join(errs...)
}

// watchable returns why a query cannot be watched.
func (o *options) watchable(q query) error {
	switch {
	case len(q.refs) != 1:
		return errors.New("--watch shows one kind or one object: name it")
	case o.tables():
		return nil
	case o.allClusters:
		return errors.New("--watch and --all-clusters print tables: leave out --output, or ask one cluster")
	case o.watchEvents:
		return errors.New("--output-watch-events adds a column to tables: leave out --output")
	}
	return nil
}

// followOne prints what changes in a cluster. It returns nil if the cluster does not offer the kind.
func (o *options) followOne(ctx context.Context, cluster *fleet.Cluster, q query, to sink) error {
	c, err := newChanges(ctx, cluster, q, to.accept())
	if err != nil || c == nil {
		return err
	}
	c.required = !o.allClusters
	print := to.of(cluster)
	told := map[types.UID]string{}
	for {
		from, err := c.list(ctx, told, print)
		if err != nil {
			return describe(cluster.Explain(err), c.ref, q)
		}
		err = c.watch(ctx, from, told, print)
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return describe(err, c.ref, q)
		}
	}
}

// newChanges returns the changes of the query in a cluster; nil if it does not offer the kind.
func newChanges(ctx context.Context, cluster *fleet.Cluster, q query, accept string) (*changes, error) {
	set, err := kinds.Discover(ctx, cluster)
	if err != nil {
		return nil, err
	}
	ref := q.refs[0]
	kind, err := set.Find(ref.Kind.Kind)
	if err != nil {
		return nil, nil
	}
	config, httpClient, err := cluster.Streaming()
	if err != nil {
		return nil, err
	}
	gv := v1alpha1.GroupVersion
	config.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	config.GroupVersion, config.APIPath = &gv, "/apis"
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &changes{rest: client, kind: kind, ref: ref, q: q, accept: accept}, nil
}

// request builds a request for the objects of the reference.
func (c *changes) request(options metav1.ListOptions) *rest.Request {
	options.LabelSelector, options.FieldSelector = c.q.selector, c.q.fields
	if c.ref.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", c.ref.Name).String()
	}
	return c.rest.Get().Resource(c.kind.Resource).
		NamespaceIfScoped(c.q.namespace, c.kind.Namespaced && c.q.namespace != "").
		VersionedParams(&options, metav1.ParameterCodec).
		Param("includeObject", string(metav1.IncludeMetadata)).
		SetHeader("Accept", c.accept)
}

// list prints the objects that were not printed in their version, and returns the version to watch from.
func (c *changes) list(ctx context.Context, told map[types.UID]string, print show) (string, error) {
	raw, err := send(ctx, c.request(metav1.ListOptions{}))
	if err != nil {
		return "", err
	}
	list := &unstructured.Unstructured{}
	if err := list.UnmarshalJSON(raw); err != nil {
		return "", fmt.Errorf("read %s: %w", c.kind.Resource, err)
	}
	found, err := split(list)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", c.kind.Resource, err)
	}
	if c.ref.Name != "" && len(found) == 0 && len(told) == 0 && c.required {
		return "", notFound(c.ref)
	}
	found = slices.DeleteFunc(found, func(v version) bool { return told[v.uid] == v.version })
	for _, v := range found {
		told[v.uid] = v.version
	}
	at, _, _ := unstructured.NestedString(list.Object, "metadata", "resourceVersion")
	return at, print(watch.Added, found)
}

// watch prints changes until the API server no longer knows the version to go on from, or ctx ends.
func (c *changes) watch(ctx context.Context, from string, told map[types.UID]string, print show) error {
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.Watch = true
		return c.request(options).Watch(ctx)
	}}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, from, source)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		found, err := split(object)
		if err != nil {
			return fmt.Errorf("read %s: %w", c.kind.Resource, err)
		}
		for _, v := range found {
			told[v.uid] = v.version
			if event.Type == watch.Deleted {
				delete(told, v.uid)
			}
		}
		if err := print(event.Type, found); err != nil {
			return err
		}
	}
	return ctx.Err()
}
