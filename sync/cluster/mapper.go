package cluster

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/discovery"
)

const (
	// missBelieved is how long a kind that was not found is not looked up again.
	missBelieved = 2 * time.Second
	// invalidateEvery is the least time between two calls of Invalidate that take effect.
	invalidateEvery = 10 * time.Second
)

// mapper is a RESTMapper that loads discovery on first use, remembers the result, and asks again
// for kinds that it does not know, but not more often than every missBelieved, so that manifests of
// a kind that does not exist cost next to nothing. Callers that see a CRD appear must call Reset.
type mapper struct {
	build func() (meta.RESTMapper, error)
	// onReset is called by Reset.
	onReset func()

	mu    sync.Mutex
	inner meta.RESTMapper // nil until first used, and after Reset
	// missed has the errors of questions that had no answer a moment ago.
	missed *utilcache.Expiring
}

var _ meta.ResettableRESTMapper = (*mapper)(nil)

func newMapper(build func() (meta.RESTMapper, error), onReset func()) *mapper {
	return &mapper{build: build, onReset: onReset, missed: utilcache.NewExpiring()}
}

// Reset forgets all mappings. The next look-up loads them again.
func (m *mapper) Reset() {
	m.mu.Lock()
	m.inner, m.missed = nil, utilcache.NewExpiring()
	m.mu.Unlock()
	m.onReset()
}

// current returns the mapper to ask, or the error that the same question got a moment ago.
func (m *mapper) current(question string) (meta.RESTMapper, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if missed, ok := m.missed.Get(question); ok {
		return nil, missed.(error)
	}
	if m.inner == nil {
		inner, err := m.build()
		if err != nil {
			return nil, err
		}
		m.inner = inner
	}
	return m.inner, nil
}

func (m *mapper) remember(question string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missed.Set(question, err, missBelieved)
}

// ask puts a question to the mapper. notFound is the error if there is no answer.
func ask[A any](m *mapper, question string, notFound error, put func(meta.RESTMapper) (A, error)) (A, error) {
	var none A
	inner, err := m.current(question)
	if err != nil {
		return none, err
	}
	answer, err := put(inner)
	if meta.IsNoMatchError(err) {
		m.remember(question, notFound)
		return none, notFound
	}
	return answer, err
}

func noResource(r schema.GroupVersionResource) error {
	return &meta.NoResourceMatchError{PartialResource: r}
}

// KindFor implements meta.RESTMapper.
func (m *mapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return ask(m, "resource "+r.String(), noResource(r), func(inner meta.RESTMapper) (schema.GroupVersionKind, error) {
		return inner.KindFor(r)
	})
}

// KindsFor implements meta.RESTMapper.
func (m *mapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return ask(m, "resource "+r.String(), noResource(r), func(inner meta.RESTMapper) ([]schema.GroupVersionKind, error) {
		return inner.KindsFor(r)
	})
}

// ResourceFor implements meta.RESTMapper.
func (m *mapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return ask(m, "resource "+r.String(), noResource(r), func(inner meta.RESTMapper) (schema.GroupVersionResource, error) {
		return inner.ResourceFor(r)
	})
}

// ResourcesFor implements meta.RESTMapper.
func (m *mapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return ask(m, "resource "+r.String(), noResource(r), func(inner meta.RESTMapper) ([]schema.GroupVersionResource, error) {
		return inner.ResourcesFor(r)
	})
}

// RESTMapping implements meta.RESTMapper.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	notFound := &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	return ask(m, kindQuestion(gk, versions), notFound, func(inner meta.RESTMapper) (*meta.RESTMapping, error) {
		return inner.RESTMapping(gk, versions...)
	})
}

// RESTMappings implements meta.RESTMapper.
func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	notFound := &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	return ask(m, kindQuestion(gk, versions), notFound, func(inner meta.RESTMapper) ([]*meta.RESTMapping, error) {
		return inner.RESTMappings(gk, versions...)
	})
}

// ResourceSingularizer implements meta.RESTMapper.
func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return ask(m, "singular "+resource, noResource(schema.GroupVersionResource{Resource: resource}), func(inner meta.RESTMapper) (string, error) {
		return inner.ResourceSingularizer(resource)
	})
}

func kindQuestion(gk schema.GroupKind, versions []string) string {
	return "kind " + gk.String() + " " + strings.Join(versions, ",")
}

// steadyDiscovery limits how often callers can invalidate discovery: Helm does so before each
// action.
type steadyDiscovery struct {
	discovery.CachedDiscoveryInterface
	limiter *rate.Limiter
}

// Invalidate forgets what was discovered, unless that was done a moment ago.
func (d *steadyDiscovery) Invalidate() {
	if d.limiter.Allow() {
		d.CachedDiscoveryInterface.Invalidate()
	}
}

// reset forgets what was discovered.
func (d *steadyDiscovery) reset() {
	d.limiter.Allow() // callers need not do it, too
	d.CachedDiscoveryInterface.Invalidate()
}
