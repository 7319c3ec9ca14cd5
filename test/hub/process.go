package hub

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/test/env"
)

// SystemNamespace is the system namespace of the processes under test.
const SystemNamespace = v1alpha1.DefaultSystemNamespace

// Identity is the user that the processes under test run as, so that their requests can be
// distinguished in the audit log.
const Identity = "waybill-sync"

// probeTimeout is longer than the default, so that on a busy machine clusters do not appear to
// hang.
const probeTimeout = 15 * time.Second

// Shared is what a process passes to the controllers that it runs.
type Shared struct {
	HubID    string
	Clusters *cluster.Registry
	Secrets  *content.Reader
	Git      *git.Store
	Charts   *chart.Cache
}

// Setup adds the controllers under test to a process.
type Setup func(ctx context.Context, mgr ctrl.Manager, s Shared) error

// Process is one run of the controllers, as a program would run them.
type Process struct {
	Shared
	stop func()
}

// Stop ends the process and returns when all of it has stopped.
func (p *Process) Stop() { p.stop() }

// Main is the TestMain for packages that use this package. WAYBILL_TEST_LOG=1 shows the log of the
// controllers.
func Main(m *testing.M) {
	if os.Getenv("WAYBILL_TEST_LOG") != "" {
		log.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.UseDevMode(true)))
	} else {
		log.SetLogger(zap.New(zap.WriteTo(discard{})))
	}
	env.Main(m)
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// NewScheme returns a scheme with the kinds of Kubernetes and our own.
func NewScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return scheme
}

// Start runs controllers against a cluster until Stop or the end of the cluster: a process may outlive
// the test that started it.
func Start(t testing.TB, c *env.Cluster, setup Setup) *Process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	scheme := NewScheme(t)
	admin, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	err = admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SystemNamespace}})
	require.NoError(t, client.IgnoreAlreadyExists(err))

	user, err := c.AddUser(Identity, "system:masters")
	require.NoError(t, err)
	mgr, err := ctrl.NewManager(user, ctrl.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultTransform: cluster.Trim},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	require.NoError(t, err)
	shared := newShared(ctx, t, mgr)
	require.NoError(t, setup(ctx, mgr, shared))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); err != nil {
			log.Log.Error(err, "process under test ended")
		}
	}()
	p := &Process{Shared: shared, stop: func() {
		cancel()
		shared.Clusters.Close()
		<-done
	}}
	c.OnStop(p.Stop)
	return p
}

func newShared(ctx context.Context, t testing.TB, mgr ctrl.Manager) Shared {
	t.Helper()
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	require.NoError(t, err)
	id, err := cluster.EnsureHubID(ctx, direct, SystemNamespace)
	require.NoError(t, err)
	local, err := cluster.NewLocal(ctx, mgr.GetConfig(), mgr.GetCache(), mgr.GetScheme())
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "waybill-test-cache-")
	require.NoError(t, err)
	context.AfterFunc(ctx, func() { _ = os.RemoveAll(dir) })
	store, err := git.NewStore(dir + "/git")
	require.NoError(t, err)
	charts, err := chart.NewCache(dir + "/charts")
	require.NoError(t, err)
	return Shared{
		HubID:    id,
		Clusters: cluster.NewRegistry(local, cluster.Options{Log: log.Log, ProbeTimeout: probeTimeout}),
		Secrets:  content.NewReader(ctx, mgr.GetCache(), direct),
		Git:      store,
		Charts:   charts,
	}
}
