package kubernetescluster_test

import (
	"context"
	"os"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/controllers/kubernetescluster"
	"waybill.dev/waybill/sync/controllers/kubernetescluster/agent"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	env.Main(m)
}

const (
	limit = env.Limit
	often = 10 * time.Millisecond
	hubID = "6e0a7c5c-1f0f-4b0e-9d53-000000000001"
	label = "test"
)

func hubCluster(t testing.TB) *env.Cluster {
	return env.Shared(t, env.Options{Name: "hub", CRDs: []string{"../../../charts/waybill/crds"}, Audit: true})
}

// userCluster has no CRDs: the product brings them.
func userCluster(t testing.TB) *env.Cluster {
	return env.Shared(t, env.Options{Name: "user", NoControllers: true, Audit: true})
}

// hub is the hub of one test: a namespace, and the controller that serves just that.
type hub struct {
	client.Client
	t        *testing.T
	ns       string
	options  options
	registry *cluster.Registry
	stop     func()
}

// options of the controller of a test.
type options struct {
	kubeconfigs cluster.KubeconfigOptions
	connectOnly bool
	remoteOnly  bool
	// agentImage is what spec.agent installs.
	agentImage string
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return scheme
}

func newClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: newScheme(t)})
	require.NoError(t, err)
	return c
}

// newHub starts the controller. It stops at the end of the test, and what the test left is
// removed past it.
func newHub(t *testing.T, o options) *hub {
	t.Helper()
	h := &hub{Client: newClient(t, hubCluster(t).RESTConfig()), t: t, ns: hubCluster(t).Namespace(t), options: o}
	t.Cleanup(h.clear)
	h.registry, h.stop = start(t, h.ns, o)
	return h
}

// restart ends the controller, and starts another that knows what is in the API server.
func (h *hub) restart() {
	h.t.Helper()
	h.stop()
	h.registry, h.stop = start(h.t, h.ns, h.options)
}

func start(t *testing.T, ns string, o options) (registry *cluster.Registry, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	mgr, err := ctrl.NewManager(hubCluster(t).RESTConfig(), ctrl.Options{
		Scheme:     newScheme(t),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	require.NoError(t, err)
	local, err := cluster.NewLocal(ctx, mgr.GetConfig(), mgr.GetCache(), mgr.GetScheme())
	require.NoError(t, err)
	registry = cluster.NewRegistry(local, cluster.Options{
		ProbeInterval: 300 * time.Millisecond,
		ProbeTimeout:  30 * time.Second,
		RetryAfter:    50 * time.Millisecond,
	})
	require.NoError(t, mgr.Add(registry))
	charts, err := chart.NewCache(t.TempDir())
	require.NoError(t, err)
	installer, err := agent.New(ctx, agent.Options{HubID: hubID, SystemNamespace: ns, Charts: charts, Image: o.agentImage, Version: "v1.2.3"})
	require.NoError(t, err)
	r := &kubernetescluster.Reconciler{
		Client:          mgr.GetClient(),
		Recorder:        mgr.GetEventRecorder("kubernetescluster"),
		Clusters:        registry,
		Secrets:         content.NewReader(ctx, mgr.GetCache(), mgr.GetAPIReader()),
		HubID:           hubID,
		SystemNamespace: ns,
		Kubeconfigs:     o.kubeconfigs,
		Agent:           installer,
		ConnectOnly:     o.connectOnly,
		RemoteOnly:      o.remoteOnly,
		ClusterSelector: labels.SelectorFromSet(labels.Set{label: ns}),
	}
	require.NoError(t, r.SetupWithManager(ctx, mgr))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		err := <-done
		if err != nil { // which goroutine did not end
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		}
		require.NoError(t, err)
	})
	t.Cleanup(stop)
	return registry, stop
}

// clear removes what the test left: no controller removes the finalizers.
func (h *hub) clear() {
	ctx := context.WithoutCancel(h.t.Context())
	list := &v1alpha1.KubernetesClusterList{}
	require.NoError(h.t, h.List(ctx, list, client.InNamespace(h.ns)))
	for i := range list.Items {
		kc := &list.Items[i]
		before := kc.DeepCopy()
		kc.Finalizers = nil
		require.NoError(h.t, client.IgnoreNotFound(h.Patch(ctx, kc, client.MergeFrom(before))))
		require.NoError(h.t, client.IgnoreNotFound(h.Delete(ctx, kc)))
	}
}

func (h *hub) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: h.ns, Name: name}
}

// add creates a KubernetesCluster and, where there is a kubeconfig, its Secret.
func (h *hub) add(name string, kubeconfig []byte, change ...func(*v1alpha1.KubernetesCluster)) *v1alpha1.KubernetesCluster {
	h.t.Helper()
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: h.ns, Name: name, Labels: map[string]string{label: h.ns},
	}}
	if kubeconfig != nil {
		h.secret(name, map[string][]byte{"value": kubeconfig})
		kc.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: name}
	}
	for _, f := range change {
		f(kc)
	}
	require.NoError(h.t, h.Create(h.t.Context(), kc))
	return kc
}

// secret creates or replaces a Secret.
func (h *hub) secret(name string, data map[string][]byte) {
	h.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name}, Data: data}
	if err := h.Create(h.t.Context(), secret); err != nil {
		require.NoError(h.t, h.Update(h.t.Context(), secret))
	}
}

func (h *hub) get(name string) *v1alpha1.KubernetesCluster {
	h.t.Helper()
	kc := &v1alpha1.KubernetesCluster{}
	require.NoError(h.t, h.Get(h.t.Context(), h.key(name), kc))
	return kc
}

// change edits a KubernetesCluster.
func (h *hub) change(name string, f func(*v1alpha1.KubernetesCluster)) {
	h.t.Helper()
	kc := h.get(name)
	before := kc.DeepCopy()
	f(kc)
	require.NoError(h.t, h.Patch(h.t.Context(), kc, client.MergeFrom(before)))
}

// until waits for a KubernetesCluster to be as the test wants it.
func (h *hub) until(name string, as func(*v1alpha1.KubernetesCluster) bool, reason string) *v1alpha1.KubernetesCluster {
	h.t.Helper()
	var kc *v1alpha1.KubernetesCluster
	ok := func() bool {
		kc = h.get(name)
		return as(kc)
	}
	if !eventually(ok) {
		require.Failf(h.t, "never so", "%s: %+v", reason, kc.Status)
	}
	return kc
}

// seen waits until the controller sees an object as it was written: what holds a KubernetesCluster
// comes by other watches than its deletion.
func (h *hub) seen(o client.Object) {
	h.t.Helper()
	cached, now := h.registry.Local().Client(), o.DeepCopyObject().(client.Object)
	require.True(h.t, eventually(func() bool {
		err := cached.Get(h.t.Context(), client.ObjectKeyFromObject(o), now)
		return err == nil && now.GetResourceVersion() == o.GetResourceVersion()
	}), "%T %s is not seen", o, o.GetName())
}

func eventually(ok func() bool) bool {
	tick := time.NewTicker(often)
	defer tick.Stop()
	for end := time.Now().Add(limit); time.Now().Before(end); <-tick.C {
		if ok() {
			return true
		}
	}
	return false
}

// gone waits until the KubernetesCluster does not exist any more.
func (h *hub) gone(name string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool {
		err := h.Get(h.t.Context(), h.key(name), &v1alpha1.KubernetesCluster{})
		return client.IgnoreNotFound(err) == nil && err != nil
	}, limit, often)
}
