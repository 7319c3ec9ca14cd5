package cluster

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile/turns"
)

// Cluster is one API server accessed with one identity. It is safe for concurrent use. Everything
// that it returns is built once and shares the connections and the breaker of the cluster.
type Cluster struct {
	name  types.NamespacedName
	uid   string
	ctx   context.Context
	kinds *kinds
	// version of the API server at the time a local cluster was built; empty for others.
	version string
	// lost returns why the cluster does not answer; nil while it does.
	lost func() error
	// returned returns a channel that is closed when a lost cluster is back; nil while it answers.
	returned func() <-chan struct{}
	// holds is nil for the local cluster itself, whose connections last as long as the process.
	holds *turns.Group

	config    *rest.Config
	discovery *steadyDiscovery
	mapper    *mapper
	metadata  metadata.Interface
	dynamic   dynamic.Interface
	client    client.Client
	cache     cache.Cache

	views *views
	// ledger sums up what is kept of the objects of a user cluster; nil for the local one, which is
	// trusted.
	ledger *ledger
}

// Name returns the name of the KubernetesCluster; zero for the local cluster itself.
func (c *Cluster) Name() types.NamespacedName { return c.name }

// UID returns the UID of the cluster's namespace kube-system. It is the same for all names of one
// cluster.
func (c *Cluster) UID() string { return c.uid }

// Config returns the configuration for clients: it has no client-side rate limit, and uses the
// connections and the breaker of the cluster. That of a user cluster holds no credentials: they are
// added to each request, so that they can be renewed. Callers must not modify it; rest.CopyConfig
// copies it.
func (c *Cluster) Config() *rest.Config { return c.config }

// Mapper returns the cluster's mapper, which is shared by all identities. It asks the API server
// for kinds that it does not know, at most once every two seconds per kind. Call
// meta.MaybeResetRESTMapper to reset it after a CRD has appeared.
func (c *Cluster) Mapper() meta.RESTMapper { return c.mapper }

// Discovery returns cached discovery of the API server. Its Invalidate takes effect at most every
// ten seconds; a reset of the mapper always does.
func (c *Cluster) Discovery() discovery.CachedDiscoveryInterface { return c.discovery }

// Metadata returns a client for the metadata of objects of any kind.
func (c *Cluster) Metadata() metadata.Interface { return c.metadata }

// Dynamic returns a client for objects of any kind.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Client returns a client that reads our own kinds from Cache and everything else from the API
// server. The client of an impersonated view reads nothing from the cache, which was filled with
// other permissions.
func (c *Cluster) Client() client.Client { return c.client }

// Cache returns the cache of our own kinds, and of the metadata that is watched; nil for
// impersonated views. Informers start when they are first requested. Request them with
// cache.BlockUntilSynced(false): an informer of a lost cluster does not sync until the cluster is
// back.
func (c *Cluster) Cache() cache.Cache { return c.cache }

// Context ends when the cluster is disengaged: removed, or given the credentials of another user.
func (c *Cluster) Context() context.Context { return c.ctx }

// Hold keeps the connections of the cluster after Context has ended, for a few seconds at most, until
// release is called: work that Context cancels can still record its result in the cluster. Until
// then, the cluster is not driven as another user either.
func (c *Cluster) Hold() (release func()) {
	if c.holds == nil || !c.holds.Begin() {
		return func() {}
	}
	return sync.OnceFunc(c.holds.End)
}

// IsSeed reports whether the KubernetesCluster of the cluster, which hub reads, is a seed. That never changes while
// the cluster is engaged.
func (c *Cluster) IsSeed(ctx context.Context, hub client.Reader) (bool, error) {
	kc := &v1alpha1.KubernetesCluster{}
	if err := hub.Get(ctx, c.name, kc, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get cluster: %w", err)
	}
	return kc.IsSeed(), nil
}

// Reachable returns nil while the API server answers, and otherwise an UnreachableError.
func (c *Cluster) Reachable() error { return c.lost() }

// open sets everything that the cluster needs to be talked to, and returns its HTTP client. It sends
// no request yet.
func (c *Cluster) open() (*http.Client, error) {
	httpClient, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return nil, fmt.Errorf("build http client: %w", err)
	}
	if err := c.discover(httpClient); err != nil {
		return nil, err
	}
	return httpClient, c.connect(httpClient)
}

// discover sets the discovery and the mapper of the cluster. Neither sends a request yet.
func (c *Cluster) discover(httpClient *http.Client) error {
	plain, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, httpClient)
	if err != nil {
		return fmt.Errorf("build discovery client: %w", err)
	}
	c.discovery = &steadyDiscovery{
		CachedDiscoveryInterface: memory.NewMemCacheClient(plain), limiter: rate.NewLimiter(rate.Every(invalidateEvery), 1),
	}
	c.mapper = newMapper(func() (meta.RESTMapper, error) {
		return apiutil.NewDynamicRESTMapper(c.config, httpClient)
	}, c.discovery.reset)
	return nil
}

// connect sets the clients of the cluster's identity.
func (c *Cluster) connect(httpClient *http.Client) error {
	var err error
	if c.metadata, err = metadata.NewForConfigAndClient(c.config, httpClient); err != nil {
		return fmt.Errorf("build metadata client: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(c.config, httpClient); err != nil {
		return fmt.Errorf("build dynamic client: %w", err)
	}
	if c.ledger != nil {
		c.metadata = countedMetadata{c.metadata, c.ledger}
		c.dynamic = countedDynamic{c.dynamic, c.ledger}
	}
	c.client, err = client.New(c.config, client.Options{HTTPClient: httpClient, Scheme: c.kinds.scheme, Mapper: c.ownFirst()})
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	return nil
}

// remember makes the client read our own kinds from a cache.
func (c *Cluster) remember(from cache.Cache) {
	c.cache = from
	c.client = &cachedClient{Client: c.client, cache: from, kinds: c.kinds, lost: c.lost}
}

// ownFirst returns the mapper with our own kinds already known.
func (c *Cluster) ownFirst() meta.RESTMapper {
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{c.kinds.own, c.mapper}}
}

// Trim is a transform for caches, including that of the hub. It drops fields that are never read
// from there. The last applied configuration stays in our own kinds, which are written back. It is
// dropped from metadata: it would be the largest part, and for Secrets it holds the very data that
// reading only metadata is meant to avoid.
func Trim(in any) (any, error) {
	object, err := meta.Accessor(in)
	if err != nil {
		return in, nil // nothing that has metadata to trim
	}
	object.SetManagedFields(nil)
	if partial, ok := in.(*metav1.PartialObjectMetadata); ok {
		delete(partial.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return in, nil
}

// onlyUsage is a transform for the definitions of another cluster: it keeps their metadata, by what they
// are used, and which clusters lack them. The catalog is held in memory once, on the hub.
func onlyUsage(in any) (any, error) {
	if definition, ok := in.(*v1alpha1.ApplicationDefinition); ok {
		definition.Spec = v1alpha1.ApplicationDefinitionSpec{}
		status := &definition.Status
		definition.Status = v1alpha1.ApplicationDefinitionStatus{UsedBy: status.UsedBy, Unprovided: status.Unprovided}
		delete(definition.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return Trim(in)
}

// newCache builds the cache of our own kinds. The caller must start it. Of ApplicationDefinitions, it
// holds metadata, status.usedBy and status.unprovided alone.
func (c *Cluster) newCache(httpClient *http.Client) (cache.Cache, error) {
	built, err := cache.New(c.config, cache.Options{
		HTTPClient:       httpClient,
		Scheme:           c.kinds.scheme,
		Mapper:           c.ownFirst(),
		DefaultTransform: Trim,
		ByObject:         map[client.Object]cache.ByObject{&v1alpha1.ApplicationDefinition{}: {Transform: onlyUsage}},
		NewInformer:      c.ledger.informer,
	})
	if err != nil {
		return nil, fmt.Errorf("build cache: %w", err)
	}
	return built, nil
}
