package webhooks

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
)

const (
	// missBelieved is how long discovery is not asked again after a miss, no matter how many
	// unknown kinds are named: all users who write Applications here share it.
	missBelieved = time.Second

	// kindsTimeout bounds a discovery request, which takes no context.
	kindsTimeout = 3 * time.Second
)

// kinds finds the resources of kinds in a cache of the API server's discovery data.
type kinds struct {
	mapper *restmapper.DeferredDiscoveryRESTMapper
	clock  clock.PassiveClock
	misses *rate.Limiter // of those that reset the mapper
}

func newKinds(config *rest.Config) (*kinds, error) {
	config = rest.CopyConfig(config)
	config.Timeout = kindsTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	return kindsOf(client, clock.RealClock{}), nil
}

func kindsOf(client discovery.DiscoveryInterface, now clock.PassiveClock) *kinds {
	return &kinds{mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), clock: now, misses: rate.NewLimiter(rate.Every(missBelieved), 1)}
}

// find returns the resource of a kind and its scope. The error satisfies meta.IsNoMatchError if
// there is none, or was none within missBelieved.
func (k *kinds) find(gk schema.GroupKind) (*meta.RESTMapping, error) {
	mapping, err := k.mapper.RESTMapping(gk)
	if meta.IsNoMatchError(err) && k.forget() {
		return k.mapper.RESTMapping(gk)
	}
	return mapping, err
}

// forget drops the cached discovery data, unless that was done a moment ago, and reports whether it
// did.
func (k *kinds) forget() bool {
	if !k.misses.AllowN(k.clock.Now(), 1) {
		return false
	}
	k.mapper.Reset()
	return true
}
