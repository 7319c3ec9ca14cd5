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
	"waybill.dev/waybill/cmd/waybill/internal/fleet"
	"waybill.dev/waybill/cmd/waybill/internal/kinds"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// requests is how many objects are read from one cluster at a time.
const requests = 16

// site is one cluster while a tree is built.
type site struct {
	cluster *fleet.Cluster
	note    func(string)
	slots   chan struct{}

	mu    sync.Mutex
	owned map[place]func() index
	metas map[place]func() ([]metav1.PartialObjectMetadata, error)
	users map[types.NamespacedName]func() (*site, error) // of its user clusters
	alive func(context.Context) error
}

// place identifies the objects of one kind in one namespace.
type place struct {
	kind      schema.GroupVersionKind
	namespace string
}

func newSite(cluster *fleet.Cluster, note func(string)) *site {
	s := &site{
		cluster: cluster, note: note, slots: make(chan struct{}, requests),
		owned: map[place]func() index{}, metas: map[place]func() ([]metav1.PartialObjectMetadata, error){},
		users: map[types.NamespacedName]func() (*site, error){},
	}
	var once sync.Once
	var unreachable error
	s.alive = func(ctx context.Context) error {
		once.Do(func() { _, unreachable = kinds.Discover(ctx, cluster) })
		return unreachable
	}
	return s
}

func (s *site) name() string { return s.cluster.Name() }

func (s *site) client() (client.Client, error) { return s.cluster.Client() }

// reach returns why the cluster does not answer; nil if it does. It sends one request, however
// often it is called.
func (s *site) reach(ctx context.Context) error { return s.alive(ctx) }

// node returns the node of the cluster itself; the hub may have no KubernetesCluster of its own.
func (s *site) node() *Node {
	return &Node{
		Group: v1alpha1.Group, Kind: v1alpha1.KubernetesClusterKind, Namespace: s.cluster.Key.Namespace, Name: s.name(),
		Cluster: s.name(), Health: health.Current,
	}
}

// acquire waits for a slot for a request; release frees it.
func (s *site) acquire() (release func()) {
	s.slots <- struct{}{}
	return func() { <-s.slots }
}

// read returns a live object and its node. The object is nil if it could not be read, or need not
// be because its metadata suffices.
func (s *site) read(ctx context.Context, id manifest.ID) (*unstructured.Unstructured, *Node) {
	node := newNode(id, s.name())
	c, err := s.client()
	if err != nil {
		node.Health, node.Message = health.Unknown, err.Error()
		return nil, node
	}
	gvk, err := s.versionFor(id)
	if err != nil {
		node.Health, node.Message = unread(err)
		return nil, node
	}
	defer s.acquire()()
	key := client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
	if !health.HasStatus(gvk.GroupKind()) {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(gvk)
		if err := c.Get(ctx, key, object); err != nil {
			node.Health, node.Message = unread(err)
			return nil, node
		}
		node.Health, node.Message = health.OfMetadata(object.DeletionTimestamp != nil)
		return nil, node
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := c.Get(ctx, key, object); err != nil {
		node.Health, node.Message = unread(err)
		return nil, node
	}
	return object, describe(object, s.name())
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
func (s *site) versionFor(id manifest.ID) (schema.GroupVersionKind, error) {
	mapper, err := s.cluster.Mapper()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	gk := schema.GroupKind{Group: id.Group, Kind: id.Kind}
	if id.Version != "" {
		if mapping, err := mapper.RESTMapping(gk, id.Version); err == nil {
			return mapping.GroupVersionKind, nil
		}
	}
	return s.kindFor(gk)
}

func (s *site) kindFor(gk schema.GroupKind) (schema.GroupVersionKind, error) {
	mapper, err := s.cluster.Mapper()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	mapping, err := mapper.RESTMapping(gk)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return mapping.GroupVersionKind, nil
}

// kindIn returns the version to read the objects of a namespaced kind in.
func (s *site) kindIn(gk schema.GroupKind) (schema.GroupVersionKind, error) {
	mapper, err := s.cluster.Mapper()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	mapping, err := mapper.RESTMapping(gk)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return schema.GroupVersionKind{}, errors.New("no component: the kind is cluster-scoped")
	}
	return mapping.GroupVersionKind, nil
}

// page is how many objects are listed per request.
const page = 500

// list returns all objects of a kind that the options select.
func (s *site) list(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	var all []unstructured.Unstructured
	err := s.pages(ctx, list, func() { all = append(all, list.Items...) }, options...)
	return all, err
}

// metadata returns the metadata of all objects of a kind in a namespace, from one list, however
// often it is called.
func (s *site) metadata(ctx context.Context, in place) ([]metav1.PartialObjectMetadata, error) {
	s.mu.Lock()
	load, ok := s.metas[in]
	if !ok {
		load = sync.OnceValues(func() ([]metav1.PartialObjectMetadata, error) {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(in.kind)
			var all []metav1.PartialObjectMetadata
			err := s.pages(ctx, list, func() { all = append(all, list.Items...) }, client.InNamespace(in.namespace))
			return all, err
		})
		s.metas[in] = load
	}
	s.mu.Unlock()
	return load()
}

// pages reads a list page by page into list, and calls each after every page.
func (s *site) pages(ctx context.Context, list client.ObjectList, each func(), options ...client.ListOption) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	defer s.acquire()()
	kind := list.GetObjectKind().GroupVersionKind()
	for {
		list.GetObjectKind().SetGroupVersionKind(kind)
		paged := append(slices.Clone(options), client.Limit(page), client.Continue(list.GetContinue()))
		if err := c.List(ctx, list, paged...); err != nil {
			return fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		each()
		if list.GetContinue() == "" {
			return nil
		}
	}
}
