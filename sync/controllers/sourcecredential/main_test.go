package sourcecredential_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/controllers/sourcecredential"
	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if os.Getenv("WAYBILL_TEST_LOG") != "" {
		ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.UseDevMode(true)))
	}
	env.Main(m)
}

const (
	limit = env.Limit
	often = 10 * time.Millisecond
	hubID = "6e0a7c5c-1f0f-4b0e-9d53-000000000002"
)

func shared(t testing.TB, name string) *env.Cluster { return env.Shared(t, clusterOptions(name)) }

func clusterOptions(name string) env.Options {
	return env.Options{Name: name, NoControllers: true, CRDs: []string{"../../../charts/waybill/crds"}, Audit: true}
}

func newClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c
}

// suite is one test: a hub with the controller, whose system namespace is the test's own. A seed and a user
// cluster have a namespace of that name as well.
type suite struct {
	client.Client // of the hub
	t             *testing.T
	system        string
	seed, user    client.Client
	toNamespaces  bool
	registry      *cluster.Registry
	stop          func()
}

func newSuite(t *testing.T, change ...func(*suite)) *suite {
	t.Helper()
	env.SharedAll(t, clusterOptions("hub"), clusterOptions("seed"), clusterOptions("user"))
	s := &suite{
		Client: newClient(t, shared(t, "hub").RESTConfig()), t: t, system: shared(t, "hub").Namespace(t),
		seed: newClient(t, shared(t, "seed").RESTConfig()), user: newClient(t, shared(t, "user").RESTConfig()),
	}
	for _, f := range change {
		f(s)
	}
	for _, c := range []client.Client{s.seed, s.user} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.system}}
		require.NoError(t, c.Create(t.Context(), namespace))
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), namespace) })
	}
	s.start()
	return s
}

// toNamespaces has Secrets copied to the namespaces of KubernetesClusters.
func toNamespaces(s *suite) { s.toNamespaces = true }

// start starts the controller; a test may stop it and start it anew.
func (s *suite) start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	mgr, err := ctrl.NewManager(shared(s.t, "hub").RESTConfig(), ctrl.Options{
		Scheme:     s.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultTransform: cluster.Trim},
	})
	require.NoError(s.t, err)
	local, err := cluster.NewLocal(ctx, mgr.GetConfig(), mgr.GetCache(), mgr.GetScheme())
	require.NoError(s.t, err)
	s.registry = cluster.NewRegistry(local, cluster.Options{
		ProbeInterval: 300 * time.Millisecond, ProbeTimeout: time.Hour, RetryAfter: 50 * time.Millisecond,
	})
	require.NoError(s.t, mgr.Add(s.registry))
	r := &sourcecredential.Reconciler{
		Client: mgr.GetClient(), Clusters: s.registry, Secrets: content.NewReader(ctx, mgr.GetCache(), s.Client),
		HubID: hubID, SystemNamespace: s.system, ToNamespaces: s.toNamespaces,
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

// engage creates a KubernetesCluster in a namespace, and engages it as its own controller would.
func (s *suite) engage(kc *v1alpha1.KubernetesCluster, config *rest.Config) *v1alpha1.KubernetesCluster {
	s.t.Helper()
	require.NoError(s.t, s.Create(s.t.Context(), kc))
	s.t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(s.t.Context()), kc) })
	s.ensure(kc, config)
	return kc
}

func (s *suite) ensure(kc *v1alpha1.KubernetesCluster, config *rest.Config) {
	s.t.Helper()
	key := client.ObjectKeyFromObject(kc)
	cached := s.registry.Local().Client()
	require.Eventually(s.t, func() bool { return cached.Get(s.t.Context(), key, &v1alpha1.KubernetesCluster{}) == nil }, limit, often)
	s.registry.Ensure(key, "a", config)
}

func (s *suite) newSeed(name string) *v1alpha1.KubernetesCluster {
	return &v1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: name},
		Spec:       v1alpha1.KubernetesClusterSpec{Role: v1alpha1.ClusterRoleSeed},
	}
}

// gated is the configuration of a cluster behind a gate.
func (s *suite) gated(name string) (*env.Gate, *rest.Config) {
	s.t.Helper()
	gate, err := env.NewGate(shared(s.t, name).Address())
	require.NoError(s.t, err)
	s.t.Cleanup(gate.Close)
	return gate, env.Via(gate, shared(s.t, name).RESTConfig())
}

// secret creates a Secret of the hub's system namespace; with an annotation if a type is given.
func (s *suite) secret(name, password, annotation string) *corev1.Secret {
	s.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: name},
		Data:       map[string][]byte{"username": []byte("platform"), "password": []byte(password)},
	}
	if annotation != "" {
		secret.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: annotation}
	}
	require.NoError(s.t, s.Create(s.t.Context(), secret))
	return secret
}

// change edits a Secret, wherever it is.
func change(t *testing.T, c client.Client, namespace, name string, f func(*corev1.Secret)) {
	t.Helper()
	secret := find(t, c, namespace, name)
	require.NotNil(t, secret, name)
	before := secret.DeepCopy()
	f(secret)
	require.NoError(t, c.Patch(t.Context(), secret, client.MergeFrom(before)))
}

// find returns a Secret, or nil.
func find(t *testing.T, c client.Client, namespace, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return secret
}

func password(secret *corev1.Secret) string {
	if secret == nil {
		return ""
	}
	return string(secret.Data["password"])
}

// until waits for the password of a Secret; empty stands for no Secret.
func until(t *testing.T, c client.Client, namespace, name, want string) *corev1.Secret {
	t.Helper()
	var found *corev1.Secret
	require.Eventually(t, func() bool {
		found = find(t, c, namespace, name)
		return password(found) == want && (want != "" || found == nil)
	}, limit, often, "Secret %s/%s never has the password %q", namespace, name, want)
	return found
}

// says waits for the condition of a KubernetesCluster, and returns its message.
func (s *suite) says(kc *v1alpha1.KubernetesCluster, status metav1.ConditionStatus, reason, message string) {
	s.t.Helper()
	var found *metav1.Condition
	require.Eventually(s.t, func() bool {
		now := &v1alpha1.KubernetesCluster{}
		require.NoError(s.t, s.Get(s.t.Context(), client.ObjectKeyFromObject(kc), now))
		found = conditions.Get(now, v1alpha1.CredentialsCopiedCondition)
		return found != nil && found.Status == status && found.Reason == reason && found.Message == message
	}, limit, often, "never %s, %s, %s; last %+v", status, reason, message, &found)
}
