package env

import (
	"os"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Main is the TestMain of a package whose tests use this one: it runs the tests
// and stops everything afterwards, also on Ctrl-C.
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

// Shared returns the test binary's cluster called o.Name; the first test that asks
// starts it, Main stops it. Tests that share a cluster keep apart by Namespace.
// Asking with other options for a name that exists fails the test.
func Shared(t testing.TB, o Options) *Cluster {
	t.Helper()
	shared.Lock()
	if shared.clusters == nil {
		shared.clusters = map[string]*sharedCluster{}
	}
	s, ok := shared.clusters[o.Name]
	if !ok {
		s = &sharedCluster{options: o}
		shared.clusters[o.Name] = s
	}
	shared.Unlock()
	require.True(t, reflect.DeepEqual(s.options, o), "shared cluster %q was started with other options: %+v", o.Name, s.options)

	s.Lock()
	defer s.Unlock()
	if s.cluster == nil {
		cluster, err := StartCluster(t.Context(), o)
		require.NoError(t, err)
		s.cluster = cluster
	}
	return s.cluster
}

// Start is StartCluster for one test, which stops the cluster at its end.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c, err := StartCluster(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	return c
}

// Namespace creates a namespace for one test, with a name of its own, and asks for
// its deletion at the test's end without waiting for it.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	namespaces := client.CoreV1().Namespaces()
	ns, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		// The test's own context has ended; a cluster that the test killed does not answer.
		ctx, cancel := cleanupContext()
		defer cancel()
		_ = namespaces.Delete(ctx, ns.Name, metav1.DeleteOptions{})
	})
	return ns.Name
}
