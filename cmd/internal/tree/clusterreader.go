package tree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// requests is how many objects are read from one cluster at a time.
const requests = 16

// clusterReader reads one cluster while a tree is built, each list once.
type clusterReader struct {
	*warnings

	cluster *fleet.Cluster
	slots   chan struct{}
	alive   func(context.Context) error
	// kinds returns those whose objects may have owners: all that can be listed, but for Events.
	kinds func() []fleet.Resource

	// What was read, guarded by mu.
	mu     sync.Mutex
	metas  map[place]func() outcome[[]metav1.PartialObjectMetadata]
	owned  map[place]func() byOwner
	few    []string                // namespaces in which all kinds are listed
	graphs map[string]func() graph // by namespace; empty for the whole cluster
	lists  map[place]func() map[string]*unstructured.Unstructured
	gets   map[place]int
	aside  map[types.UID]string                                    // versions of what objects own and the tree does not show
	users  map[types.NamespacedName]func() outcome[*clusterReader] // its user clusters
}

// outcome is a value, or why there is none.
type outcome[T any] struct {
	value T
	err   error
}

// once returns what load returned when it was first called for a key. known is a map of r.
func once[K comparable, T any](r *clusterReader, known map[K]func() T, key K, load func() T) T {
	r.mu.Lock()
	loaded, ok := known[key]
	if !ok {
		loaded = sync.OnceValue(load)
		known[key] = loaded
	}
	r.mu.Unlock()
	return loaded()
}

// place identifies the objects of one kind in one namespace.
type place struct {
	kind      schema.GroupVersionKind
	namespace string
}

func newClusterReader(cluster *fleet.Cluster, w *warnings) *clusterReader {
	r := &clusterReader{
		warnings: w, cluster: cluster, slots: make(chan struct{}, requests),
		metas:  map[place]func() outcome[[]metav1.PartialObjectMetadata]{},
		owned:  map[place]func() byOwner{},
		graphs: map[string]func() graph{},
		lists:  map[place]func() map[string]*unstructured.Unstructured{},
		gets:   map[place]int{},
		aside:  map[types.UID]string{},
		users:  map[types.NamespacedName]func() outcome[*clusterReader]{},
	}
	var once sync.Once
	var unreachable error
	r.alive = func(ctx context.Context) error {
		once.Do(func() { _, unreachable = kinds.Discover(ctx, cluster) })
		return unreachable
	}
	r.kinds = sync.OnceValue(r.discover)
	return r
}

// discover returns the kinds that can be listed, but for Events.
func (r *clusterReader) discover() []fleet.Resource {
	defer r.acquire()()
	all, incomplete, err := r.cluster.Resources()
	for _, err := range []error{incomplete, err} {
		if err != nil {
			r.note("what objects own is not complete: cluster " + r.name() + ": " + err.Error())
		}
	}
	return slices.DeleteFunc(all, func(kind fleet.Resource) bool { return !kind.Can("list") || kind.Kind == "Event" })
}

func (r *clusterReader) name() string { return r.cluster.Name() }

func (r *clusterReader) client() (client.Client, error) { return r.cluster.Client() }

// reach returns why the cluster does not answer; nil if it does. It sends one request, however
// often it is called.
func (r *clusterReader) reach(ctx context.Context) error { return r.alive(ctx) }

// node returns the node of the cluster itself; the hub may have no KubernetesCluster of its own.
func (r *clusterReader) node() *treeNode {
	return &treeNode{
		Group: v1alpha1.Group, Kind: v1alpha1.KubernetesClusterKind, Namespace: r.cluster.Key.Namespace, Name: r.name(),
		Cluster: r.name(), Health: health.Current, seed: seedOf(r.cluster),
	}
}

// acquire waits for a slot for a request; release frees it.
func (r *clusterReader) acquire() (release func()) {
	r.slots <- struct{}{}
	return func() { <-r.slots }
}

// read returns a live object, or its metadata where that suffices, and its node. The object is nil
// if it could not be read.
func (r *clusterReader) read(ctx context.Context, id manifest.ID) (*unstructured.Unstructured, *treeNode) {
	node := newNode(id, r)
	c, err := r.client()
	if err != nil {
		node.Health, node.Message = health.Unknown, err.Error()
		return nil, node
	}
	gvk, err := r.versionFor(id)
	if err != nil {
		node.Health, node.Message = unread(err)
		return nil, node
	}
	defer r.acquire()()
	key := client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
	if !health.HasStatus(gvk.GroupKind()) {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(gvk)
		if err := c.Get(ctx, key, object); err != nil {
			node.Health, node.Message = unread(err)
			return nil, node
		}
		node.read(object)
		node.Health, node.Message = health.OfMetadata(object.DeletionTimestamp != nil)
		if object.DeletionTimestamp != nil && gvk.GroupKind() == namespaceKind {
			node.Message = lingering(ctx, c, key, node.Message)
		}
		known, err := withoutContent(gvk, object)
		if err != nil {
			r.note(err.Error())
		}
		return known, node
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := c.Get(ctx, key, object); err != nil {
		node.Health, node.Message = unread(err)
		return nil, node
	}
	return object, describe(object, r)
}

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// lingering adds to a message what a Namespace that is being deleted waits for, if it says.
func lingering(ctx context.Context, c client.Client, key client.ObjectKey, message string) string {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(namespaceKind.WithVersion("v1"))
	if err := c.Get(ctx, key, namespace); err != nil {
		return message
	}
	if problem := health.NamespaceProblem(namespace); problem != "" {
		return message + ": " + problem
	}
	return message
}

// unread returns the health of an object that could not be read.
func unread(err error) (health.Status, string) {
	switch {
	case apierrors.IsNotFound(err):
		return health.Of(nil)
	case meta.IsNoMatchError(err):
		return health.NotFound, "the cluster does not offer this kind"
	default:
		return health.Unknown, err.Error()
	}
}

// versionFor returns the version to read an object in: the one that it was delivered in, if the
// cluster still offers it.
func (r *clusterReader) versionFor(id manifest.ID) (schema.GroupVersionKind, error) {
	mapper, err := r.cluster.Mapper()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	gk := schema.GroupKind{Group: id.Group, Kind: id.Kind}
	if id.Version != "" {
		if mapping, err := mapper.RESTMapping(gk, id.Version); err == nil {
			return mapping.GroupVersionKind, nil
		}
	}
	return r.kindFor(gk)
}

func (r *clusterReader) kindFor(gk schema.GroupKind) (schema.GroupVersionKind, error) {
	mapper, err := r.cluster.Mapper()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	mapping, err := mapper.RESTMapping(gk)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return mapping.GroupVersionKind, nil
}

// mappingIn returns the version to read the objects of a namespaced kind in, and its resource.
func (r *clusterReader) mappingIn(gk schema.GroupKind) (*meta.RESTMapping, error) {
	mapper, err := r.cluster.Mapper()
	if err != nil {
		return nil, err
	}
	mapping, err := mapper.RESTMapping(gk)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, errors.New("no component: the kind is cluster-scoped")
	}
	return mapping, nil
}

// metadata returns the metadata of all objects of a kind in a namespace, from one list, however
// often it is called.
func (r *clusterReader) metadata(ctx context.Context, resource schema.GroupVersionResource, in place) ([]metav1.PartialObjectMetadata, error) {
	found := once(r, r.metas, in, func() outcome[[]metav1.PartialObjectMetadata] {
		list, err := r.listMetadata(ctx, resource, in)
		return outcome[[]metav1.PartialObjectMetadata]{list, err}
	})
	return found.value, found.err
}

// listMetadata lists the metadata of all objects of a kind in a namespace, or in all if that is
// empty.
func (r *clusterReader) listMetadata(ctx context.Context, resource schema.GroupVersionResource, in place) ([]metav1.PartialObjectMetadata, error) {
	defer r.acquire()()
	list, err := r.cluster.ListMetadata(ctx, resource, in.namespace, "")
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", in.kind.Kind, err)
	}
	return list, nil
}

// list returns all objects of a kind that the options select.
func (r *clusterReader) list(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	defer r.acquire()()
	list, err := r.cluster.List(ctx, kind, options...)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	return list, nil
}
