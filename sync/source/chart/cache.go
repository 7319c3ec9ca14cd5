package chart

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"
	"helm.sh/helm/v3/pkg/chart"

	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/source/address"
)

// fetchTimeout bounds a fetch whose caller set no shorter limit: a source that only trickles must
// not block its users forever.
const fetchTimeout = 2 * time.Minute

// parallelLoads is how many charts are unpacked at a time. Unpacking is what takes memory.
const parallelLoads = 4

// parallelParses is how many indexes are parsed at a time.
const parallelParses = 1

// Cache fetches charts and remembers them. It is safe for concurrent use, and two processes may
// share a directory.
type Cache struct {
	limits    Limits
	store     *store
	guard     address.Guard
	transport *http.Transport
	loading   chan struct{}
	parsing   chan struct{}

	// charts holds charts by digest, and the digests of directories by revision and path.
	charts *keyed.Recent[string, *Chart]
	trees  *keyed.Recent[string, string]
	// indexes holds indexes by the hash of their content, and where each was found.
	indexes      *keyed.Recent[[sha256.Size]byte, *index]
	indexSources *keyed.Recent[string, indexSource]

	fetchFlight, chartFlight, indexFlight singleflight.Group
}

// Option changes a Cache.
type Option func(*Cache)

// WithLimits replaces DefaultLimits.
func WithLimits(l Limits) Option { return func(c *Cache) { c.limits = l } }

// WithGuard decides where repositories and registries may be. Default: anywhere.
func WithGuard(g address.Guard) Option { return func(c *Cache) { c.guard = g } }

// How many repositories, and how many directories at their revisions, are remembered; what they
// hold is bounded by size.
const (
	maxIndexSources = 1000
	maxTrees        = 10_000
)

// NewCache returns a cache that keeps archives in dir, which is created if it does not exist.
// Archives that an earlier process left in dir are used.
func NewCache(dir string, opts ...Option) (*Cache, error) {
	c := &Cache{
		limits:  DefaultLimits(),
		loading: make(chan struct{}, parallelLoads),
		parsing: make(chan struct{}, parallelParses),
	}
	for _, opt := range opts {
		opt(c)
	}
	c.transport = newTransport(c.guard)
	var err error
	if c.store, err = openStore(dir, c.limits.DiskBytes); err != nil {
		return nil, fmt.Errorf("open chart cache: %w", err)
	}
	c.charts = keyed.NewRecent[string, *Chart](c.limits.MemoryBytes)
	c.indexes = keyed.NewRecent[[sha256.Size]byte, *index](c.limits.IndexMemoryBytes)
	c.indexSources = keyed.NewRecent[string, indexSource](maxIndexSources)
	c.trees = keyed.NewRecent[string, string](maxTrees)
	return c, nil
}

// Get returns the chart that ref names. Versions are considered immutable: a chart that was fetched
// once is returned to callers with the same credentials without a request, even by a later process.
// Concurrent calls for one chart fetch it once; the end of ctx ends the wait of this caller only.
// Errors wrap ErrAuth, ErrNotFound, ErrUnreachable, ErrInvalidChart or ErrInvalidReference.
func (c *Cache) Get(ctx context.Context, ref Reference, cred Credentials) (*Chart, error) {
	if err := ref.validate(); err != nil {
		return nil, err
	}
	if err := cred.validate(); err != nil {
		return nil, err
	}
	ref = ref.normalised()
	digest, err := c.fetch(ctx, ref, cred)
	if err != nil {
		return nil, err
	}
	loaded, err := c.load(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", ref, err)
	}
	if err := checkIdentity(loaded.Chart, ref); err != nil {
		return nil, err
	}
	return loaded, nil
}

// fetch ensures that the archive that ref names is in the store, and returns its digest.
func (c *Cache) fetch(ctx context.Context, ref Reference, cred Credentials) (string, error) {
	key := c.store.key("chart", ref.URL+"\n"+ref.Name+"\n"+ref.Version, cred)
	return once(ctx, &c.fetchFlight, key, func(ctx context.Context) (string, error) {
		if digest, ok := c.store.lookup(key); ok {
			return digest, nil
		}
		digest, err := c.download(ctx, ref, cred)
		if err != nil {
			return "", err
		}
		return digest, c.store.link(key, digest)
	})
}

func (c *Cache) download(ctx context.Context, ref Reference, cred Credentials) (string, error) {
	if ref.isOCI() {
		return c.fetchFromRegistry(ctx, ref.URL+"/"+ref.Name, ref.Version, cred)
	}
	return c.fetchFromRepository(ctx, ref, cred)
}

// load parses the archive with that digest once for all callers.
func (c *Cache) load(ctx context.Context, digest string) (*Chart, error) {
	return once(ctx, &c.chartFlight, digest, func(ctx context.Context) (*Chart, error) {
		if known, ok := c.charts.Lookup(digest); ok {
			return known, nil
		}
		parsed, size, err := c.parseArchive(ctx, digest, newBudget(c.limits))
		if err != nil {
			return nil, err
		}
		if err := checkInstallable(parsed); err != nil {
			return nil, err
		}
		loaded := &Chart{Chart: parsed, Digest: digest, size: size}
		c.charts.Put(digest, loaded, size)
		return loaded, nil
	})
}

// parseArchive unpacks and parses an archive of the store into a chart that belongs to the caller.
func (c *Cache) parseArchive(ctx context.Context, digest string, b *budget) (*chart.Chart, int64, error) {
	select {
	case c.loading <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("wait for other charts: %w", ctx.Err())
	}
	defer func() { <-c.loading }()
	archive, err := c.store.open(digest)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = archive.Close() }()
	files, err := unpack(ctx, archive, b)
	if err != nil {
		return nil, 0, err
	}
	return parse(ctx, files, b)
}

// once runs fn for all concurrent callers with one key. fn outlives the context of the first
// caller, and is bounded by fetchTimeout; each caller waits as long as its own context lasts. fn
// itself looks for what is known already: a look before the call may miss what another call stores
// meanwhile. A panic of fn, which reads what others wrote, becomes an error: no caller could recover
// it.
func once[T any](ctx context.Context, flight *singleflight.Group, key string, fn func(context.Context) (T, error)) (T, error) {
	var none T
	done := flight.DoChan(key, func() (result any, err error) {
		defer func() {
			if crash := recover(); crash != nil {
				err = fmt.Errorf("%w: reading it failed unexpectedly: %v", ErrInvalidChart, crash)
			}
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		return fn(ctx)
	})
	select {
	case <-ctx.Done():
		return none, fmt.Errorf("wait for chart: %w", ctx.Err())
	case result := <-done:
		if result.Err != nil {
			return none, result.Err
		}
		return result.Val.(T), nil
	}
}
