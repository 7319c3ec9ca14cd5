package applicationdefinition_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"waybill.dev/waybill/sync/controllers/applicationdefinition"
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
)

func shared(t testing.TB, name string) *env.Cluster { return env.Shared(t, clusterOptions(name)) }

func clusterOptions(name string) env.Options {
	return env.Options{Name: name, NoControllers: true, CRDs: []string{"../../../charts/waybill/crds"}, Audit: true}
}

// suite is one test: the hub with the controller, and what it created.
type suite struct {
	client.Client // of the hub
	t             *testing.T
	ns            string
	registry      *cluster.Registry
	stop          func()
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

// newSuite starts the controller on the hub. What the test leaves is removed after it.
func newSuite(t *testing.T) *suite {
	t.Helper()
	env.SharedAll(t, clusterOptions("hub"), clusterOptions("user"), clusterOptions("other"))
	s := &suite{Client: newClient(t, shared(t, "hub").RESTConfig()), t: t, ns: shared(t, "hub").Namespace(t)}
	t.Cleanup(s.clear)
	s.start()
	return s
}

// start starts the controller; a test may stop it and start it anew.
func (s *suite) start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	mgr, err := ctrl.NewManager(shared(s.t, "hub").RESTConfig(), ctrl.Options{
		Scheme:     newScheme(s.t),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	require.NoError(s.t, err)
	local, err := cluster.NewLocal(ctx, mgr.GetConfig(), mgr.GetCache(), mgr.GetScheme())
	require.NoError(s.t, err)
	s.registry = cluster.NewRegistry(local, cluster.Options{
		ProbeInterval: 300 * time.Millisecond, ProbeTimeout: time.Hour, RetryAfter: 50 * time.Millisecond,
	})
	require.NoError(s.t, mgr.Add(s.registry))
	r := &applicationdefinition.Reconciler{
		Client:   mgr.GetClient(),
		Recorder: mgr.GetEventRecorder("applicationdefinition"),
		Clusters: s.registry,
		HubID:    hubID,

		SystemNamespace: v1alpha1.DefaultSystemNamespace,
	}
	require.NoError(s.t, r.SetupWithManager(ctx, mgr))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	s.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(s.t, <-done)
		}
	}
	s.t.Cleanup(s.stop)
}

// clear removes what the test left on the hub and in the user clusters: no controller does.
func (s *suite) clear() {
	ctx := context.WithoutCancel(s.t.Context())
	require.NoError(s.t, s.DeleteAllOf(ctx, &v1alpha1.KubernetesCluster{}, client.InNamespace(s.ns)))
	for _, c := range []client.Client{s.Client, s.user("user"), s.user("other")} {
		list := &v1alpha1.ApplicationDefinitionList{}
		require.NoError(s.t, c.List(ctx, list))
		for i := range list.Items {
			d := &list.Items[i]
			before := d.DeepCopy()
			d.Finalizers = nil
			require.NoError(s.t, client.IgnoreNotFound(c.Patch(ctx, d, client.MergeFrom(before))))
			require.NoError(s.t, client.IgnoreNotFound(c.Delete(ctx, d)))
		}
	}
}

// user is a client of a user cluster, past the controller.
func (s *suite) user(name string) client.Client {
	return newClient(s.t, shared(s.t, name).RESTConfig())
}

func (s *suite) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.ns, Name: name}
}

// engage creates a KubernetesCluster and engages it, as its own controller would. It returns when
// the controller sees it: definitions come by another watch.
func (s *suite) engage(name string, config *rest.Config, labels map[string]string) *v1alpha1.KubernetesCluster {
	s.t.Helper()
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Labels: labels}}
	require.NoError(s.t, s.Create(s.t.Context(), kc))
	s.registry.Ensure(s.key(name), "a", config)
	cached := s.registry.Local().Client()
	require.Eventually(s.t, func() bool {
		return cached.Get(s.t.Context(), s.key(name), &v1alpha1.KubernetesCluster{}) == nil
	}, limit, often)
	return kc
}

// gated is the configuration of a user cluster behind a gate.
func (s *suite) gated(name string) (*env.Gate, *rest.Config) {
	s.t.Helper()
	gate, err := env.NewGate(shared(s.t, name).Address())
	require.NoError(s.t, err)
	s.t.Cleanup(gate.Close)
	return gate, env.Via(gate, shared(s.t, name).RESTConfig())
}

// define creates a definition on the hub.
func (s *suite) define(name string, change ...func(*v1alpha1.ApplicationDefinition)) *v1alpha1.ApplicationDefinition {
	s.t.Helper()
	d := newDefinition(name, change...)
	require.NoError(s.t, s.Create(s.t.Context(), d))
	return d
}

func newDefinition(name string, change ...func(*v1alpha1.ApplicationDefinition)) *v1alpha1.ApplicationDefinition {
	d := &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ApplicationDefinitionSpec{
			Description: "a web server",
			Versions:    []v1alpha1.ApplicationVersion{version("1.0.0")},
		},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

func version(v string) v1alpha1.ApplicationVersion {
	return v1alpha1.ApplicationVersion{Version: v, Template: &v1alpha1.ApplicationTemplate{
		Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{
			URL: "https://charts.example.com/private", ChartName: "web", ChartVersion: v,
			Credentials: &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: "registry"}},
		}},
	}}
}

// change edits a definition wherever it is.
func change(t *testing.T, c client.Client, name string, f func(*v1alpha1.ApplicationDefinition)) {
	t.Helper()
	d := get(t, c, name)
	require.NotNil(t, d, name)
	before := d.DeepCopy()
	f(d)
	require.NoError(t, c.Patch(t.Context(), d, client.MergeFrom(before)))
}

// get returns a definition, or nil.
func get(t *testing.T, c client.Client, name string) *v1alpha1.ApplicationDefinition {
	t.Helper()
	d := &v1alpha1.ApplicationDefinition{}
	err := c.Get(t.Context(), client.ObjectKey{Name: name}, d)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return d
}

// until waits for a definition to be as the test wants it; nil stands for none.
func until(t *testing.T, c client.Client, name string, as func(*v1alpha1.ApplicationDefinition) bool) *v1alpha1.ApplicationDefinition {
	t.Helper()
	var d *v1alpha1.ApplicationDefinition
	tick := time.NewTicker(often)
	defer tick.Stop()
	for end := time.Now().Add(limit); time.Now().Before(end); <-tick.C {
		if d = get(t, c, name); as(d) {
			return d
		}
	}
	require.Failf(t, "never so", "%+v", d)
	return nil
}

func present(d *v1alpha1.ApplicationDefinition) bool { return d != nil }

func absent(d *v1alpha1.ApplicationDefinition) bool { return d == nil }

func condition(d *v1alpha1.ApplicationDefinition, name string) metav1.Condition {
	if c := meta.FindStatusCondition(d.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func isReady(d *v1alpha1.ApplicationDefinition) bool {
	return d != nil && d.Status.ObservedGeneration == d.Generation && condition(d, v1alpha1.ReadyCondition).Status == metav1.ConditionTrue
}

// says reports whether a definition is not ready for that reason, and says so.
func says(reason, message string) func(*v1alpha1.ApplicationDefinition) bool {
	return func(d *v1alpha1.ApplicationDefinition) bool {
		ready := condition(d, v1alpha1.ReadyCondition)
		return ready.Status == metav1.ConditionFalse && ready.Reason == reason && strings.Contains(ready.Message, message)
	}
}
