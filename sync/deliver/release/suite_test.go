package release_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/render/isolated"
	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) {
	kube.ManagedFieldsManager = "helm" // as the helm command says
	isolated.Main()
	env.Main(m)
}

// builder renders charts as in a process that serves many.
var builder = isolated.NewBuilder(isolated.Options{})

// failingHooks lets the Pods of Jobs that are labelled so fail.
const failingHooks = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: hook-fails}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {hook: fails}
    matchExpressions: [{key: .status.phase, operator: NotIn, values: [Succeeded, Failed]}]
  weight: 100
  next: {statusTemplate: "phase: Failed"}
`

// world is a cluster with a namespace for one test.
type world struct {
	*testing.T
	cluster   *env.Cluster
	target    *target
	client    kubernetes.Interface
	namespace string
	// user is who the engine is in the audit log.
	user   string
	engine *release.Engine
	// known is what a status would say of the releases.
	known map[string]v1alpha1.ReleaseStatus
}

// parallel holds the tests that run at the same time as others.
var parallel sync.Map

// newWorld returns a world of the test's own; tests of different worlds run at the same time, since most
// of what they do is to wait for Pods.
func newWorld(t *testing.T) *world {
	t.Helper()
	if _, again := parallel.LoadOrStore(t, true); !again {
		t.Parallel()
	}
	c := env.Shared(t, env.Options{Name: "release", Audit: true, Pods: true, Stages: failingHooks})
	namespace := c.Namespace(t)
	user := "release-engine-of-" + namespace
	config, err := c.AddUser(user, "system:masters")
	require.NoError(t, err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	w := &world{T: t, cluster: c, target: newTarget(t, config), client: client, namespace: namespace, user: user, engine: release.NewEngine().RenderedBy(builder),
		known: map[string]v1alpha1.ReleaseStatus{}}
	// What a process does once, before its first action.
	_, _, err = w.target.discovery.ServerGroupsAndResources()
	require.NoError(t, err)
	return w
}

// target is what sync/cluster is to the engine.
type target struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
}

func newTarget(t *testing.T, config *rest.Config) *target {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	cached := memory.NewMemCacheClient(client)
	return &target{config: config, discovery: cached, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}
}

func (t *target) Config() *rest.Config                          { return t.config }
func (t *target) Mapper() meta.RESTMapper                       { return t.mapper }
func (t *target) Discovery() discovery.CachedDiscoveryInterface { return t.discovery }

type values = map[string]any

func (w *world) identity(name string) release.Identity {
	id := release.Identity{
		Namespace: w.namespace, Name: name,
		OwnerHash: "hash-of-" + name, Owner: "hub/ApplicationInstallation/default/" + name,
	}
	if known, ok := w.known[name]; ok {
		id.Known = &known
	}
	return id
}

// desired is a release of a chart of testdata, named as the chart.
func (w *world) desired(chartName string, v values) release.Desired {
	w.Helper()
	c, err := loader.LoadDir("testdata/" + chartName)
	require.NoError(w, err)
	return release.Desired{Identity: w.identity(chartName), Chart: c, ChartDigest: "sha256:" + chartName, Values: v}
}

// template is a release of a chart of one template.
func (w *world) template(text string) release.Desired {
	return release.Desired{
		Identity: w.identity("one"),
		Chart: &chart.Chart{
			Metadata:  &chart.Metadata{APIVersion: "v2", Name: "one", Version: "1.0.0"},
			Templates: []*chart.File{{Name: "templates/one.yaml", Data: []byte(text)}},
		},
		ChartDigest: text,
	}
}

func (w *world) ensure(d release.Desired) release.Result {
	w.Helper()
	result, err := w.try(w.Context(), d)
	require.NoError(w, err)
	return result
}

// try is Ensure as a controller calls it, that notes what it gets of the release.
func (w *world) try(ctx context.Context, d release.Desired) (release.Result, error) {
	d.Known = w.identity(d.Name).Known
	result, err := w.engine.Ensure(ctx, w.target, d)
	if result.Release.Name != "" {
		w.known[d.Name] = result.Release
	}
	return result, err
}

// calls counts what the engine asks for while do runs.
func (w *world) calls(do func()) []env.Request {
	w.Helper()
	mark, err := w.cluster.AuditMark(w.Context())
	require.NoError(w, err)
	do()
	// A list that begins with a resource version is an informer's; the engine's own lists count.
	requests, err := w.cluster.Requests(w.Context(), mark, env.ByUser(w.user), env.Accepted, func(r env.Request) bool { return r.Verb != "watch" })
	require.NoError(w, err)
	for _, r := range requests {
		w.Logf("%s %s -> %d", r.Verb, r.URI, r.Code)
	}
	return requests
}

func (w *world) configMap(name string) (*corev1.ConfigMap, error) {
	return w.client.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
}

// revisions lists the records of a release as Helm keeps them: status by revision.
func (w *world) revisions(name string) []string {
	w.Helper()
	list, err := w.client.CoreV1().Secrets(w.namespace).List(w.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=" + name})
	require.NoError(w, err)
	var found []string
	for _, s := range list.Items {
		found = append(found, s.Labels["version"]+" "+s.Labels["status"])
	}
	return found
}

var _ release.Target = (*target)(nil)

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
}
