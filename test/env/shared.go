package env

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// Main is the TestMain for packages whose tests use this package: it runs the tests and stops
// everything afterwards, also on Ctrl-C.
func Main(m *testing.M) {
	StopOnSignal()
	code := m.Run()
	StopAll()
	os.Exit(code)
}

// shared holds the clusters of this test binary by name.
var shared struct {
	sync.Mutex
	clusters map[string]*sharedCluster
}

type sharedCluster struct {
	sync.Mutex
	options Options
	cluster *Cluster
}

// Shared returns the test binary's cluster named o.Name. The first call starts it, and Main stops
// it. Tests that share a cluster are isolated by Namespace. A call with the name of an existing
// cluster but other options fails the test.
func Shared(t testing.TB, o Options) *Cluster {
	t.Helper()
	return SharedAll(t, o)[0]
}

// SharedAll is like Shared for several clusters, which start in parallel. It returns them in the
// order of the options.
func SharedAll(t testing.TB, options ...Options) []*Cluster {
	t.Helper()
	clusters := make([]*Cluster, len(options))
	group, ctx := errgroup.WithContext(t.Context())
	for i, o := range options {
		group.Go(func() (err error) {
			clusters[i], err = sharedEntry(o).get(ctx, o)
			return err
		})
	}
	require.NoError(t, group.Wait())
	return clusters
}

func sharedEntry(o Options) *sharedCluster {
	shared.Lock()
	defer shared.Unlock()
	if shared.clusters == nil {
		shared.clusters = map[string]*sharedCluster{}
	}
	s, ok := shared.clusters[o.Name]
	if !ok {
		s = &sharedCluster{options: o}
		shared.clusters[o.Name] = s
	}
	return s
}

func (s *sharedCluster) get(ctx context.Context, o Options) (*Cluster, error) {
	if !reflect.DeepEqual(s.options, o) {
		return nil, fmt.Errorf("shared cluster %q was started with other options: %+v", o.Name, s.options)
	}
	s.Lock()
	defer s.Unlock()
	if s.cluster != nil {
		return s.cluster, nil
	}
	cluster, err := startOrBorrow(ctx, o)
	if err != nil {
		return nil, err
	}
	s.cluster = cluster
	return cluster, nil
}

// Start is like StartCluster, but stops the cluster at the end of the test. As for Shared, it may be
// one that was borrowed from a Pool: like new, but one that another test gets afterwards, so all that
// the test runs against it has to end with the test, at the latest by OnStop.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c, err := startOrBorrow(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	return c
}

// Address is like FreeAddress, but fails the test on errors.
func Address(t testing.TB) string {
	t.Helper()
	address, err := FreeAddress()
	require.NoError(t, err)
	return address
}
