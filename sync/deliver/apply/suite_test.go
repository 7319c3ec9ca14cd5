package apply_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }

// patience is how long a test waits for what happens in its own time, and often how often it
// looks.
const (
	patience = env.Limit
	often    = 100 * time.Millisecond
)

// target is an API server under one identity.
type target struct {
	mapper    meta.RESTMapper
	discovery discovery.CachedDiscoveryInterface
	metadata  metadata.Interface
	dynamic   dynamic.Interface
}

func (t *target) Mapper() meta.RESTMapper                       { return t.mapper }
func (t *target) Discovery() discovery.CachedDiscoveryInterface { return t.discovery }
func (t *target) Metadata() metadata.Interface                  { return t.metadata }
func (t *target) Dynamic() dynamic.Interface                    { return t.dynamic }

// mapper forgets what it has discovered when it is reset, as that of a cluster does.
type mapper struct {
	meta.RESTMapper // nil, because only RESTMapping is asked for
	build           func() meta.RESTMapper
	now             atomic.Value
}

func (m *mapper) Reset() { m.now.Store(m.build()) }

func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.now.Load().(meta.RESTMapper).RESTMapping(kind, versions...)
}

func newTarget(t testing.TB, config *rest.Config) *target {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	kinds := &mapper{build: func() meta.RESTMapper {
		built, err := apiutil.NewDynamicRESTMapper(config, client)
		assert.NoError(t, err)
		return built
	}}
	kinds.Reset()
	plain, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	require.NoError(t, err)
	partial, err := metadata.NewForConfigAndClient(config, client)
	require.NoError(t, err)
	whole, err := dynamic.NewForConfigAndClient(config, client)
	require.NoError(t, err)
	return &target{mapper: kinds, discovery: memory.NewMemCacheClient(plain), metadata: partial, dynamic: whole}
}

// requests counts what is asked of the API server beyond watches and discovery.
type requests struct {
	mu   sync.Mutex
	made []string
	// before is called once, before the next request of a method is passed on, or after.
	method string
	before func()
}

// answered, before a method, stands for the moment at which such a request has been answered.
const answered = "answered "

// interfere has something done just before the next request of a method, or after it.
func (r *requests) interfere(method string, before func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.method, r.before = method, before
}

func (r *requests) interference(method string) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.before == nil || r.method != method {
		return func() {}
	}
	before := r.before
	r.before = nil
	return before
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		path, query := request.URL.Path, request.URL.Query()
		isDiscovery := path == "/api" || path == "/apis" || len(splitPath(path)) < 4
		if !isDiscovery && query.Get("watch") == "" && !query.Has("resourceVersion") {
			r.mu.Lock()
			r.made = append(r.made, request.Method+" "+path)
			r.mu.Unlock()
		}
		r.interference(request.Method)()
		response, err := next.RoundTrip(request)
		r.interference(answered + request.Method)()
		return response, err
	})
}

func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// take returns the requests since the last time.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	made := r.made
	r.made = nil
	return made
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fixture is an applier on a real API server, seen by another user: admin.
type fixture struct {
	*apply.Applier
	t         testing.TB
	cluster   *env.Cluster
	target    *target
	user      string // that rights are granted to, where it is not an administrator
	admin     *target
	namespace string
	owner     apply.Owner
	requests  *requests
	notified  chan apply.Owner
}

func shared(t testing.TB) *env.Cluster { return env.Shared(t, env.Options{Name: "apply"}) }

// newFixture applies with all rights.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	cluster := shared(t)
	return newFixtureAs(t, cluster, cluster.RESTConfig())
}

// newFixtureAs applies with the rights of a configuration.
func newFixtureAs(t testing.TB, cluster *env.Cluster, config *rest.Config) *fixture {
	t.Helper()
	f := &fixture{
		t:         t,
		cluster:   cluster,
		admin:     newTarget(t, cluster.RESTConfig()),
		namespace: cluster.Namespace(t),
		requests:  &requests{},
	}
	f.owner = apply.Owner{HubID: "hub-1", Kind: "GitSync", Namespace: "team", Name: f.namespace}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(f.requests.wrap)
	f.target = newTarget(t, config)
	f.restart()
	return f
}

// restart makes a new Applier, as a new process would.
func (f *fixture) restart() {
	notified := make(chan apply.Owner, 10000)
	f.notified = notified
	f.Applier = apply.New(f.t.Context(), f.target, apply.Options{Notify: func(o apply.Owner) { notified <- o }})
	f.t.Cleanup(func() { f.Forget(f.owner) })
}

// apply applies objects for the owner of the fixture, pruning what was before.
func (f *fixture) apply(before []manifest.ID, objects ...manifest.Object) apply.Result {
	return f.Apply(f.t.Context(), f.request(before, objects...))
}

func (f *fixture) request(before []manifest.ID, objects ...manifest.Object) apply.Request {
	return apply.Request{Owner: f.owner, Objects: objects, Inventory: before, Prune: true, DefaultNamespace: f.namespace}
}

// mustApply is apply where everything is to succeed.
func (f *fixture) mustApply(before []manifest.ID, objects ...manifest.Object) apply.Result {
	f.t.Helper()
	result := f.apply(before, objects...)
	requireClean(f.t, result)
	return result
}

func requireClean(t testing.TB, result apply.Result) {
	t.Helper()
	require.NoError(t, result.Err)
	require.Empty(t, result.Problems)
	require.Empty(t, result.Waiting)
	require.Empty(t, result.Warnings)
}

// awaitNotice waits until the owner of the fixture is notified.
func (f *fixture) awaitNotice() {
	f.t.Helper()
	require.Equal(f.t, f.owner, f.nextNotice())
}

// nextNotice waits until an owner is notified, and returns it.
func (f *fixture) nextNotice() apply.Owner {
	f.t.Helper()
	return env.Receive(f.t, f.notified, "no notice")
}

// until applies again at each notice until a result is as it should be.
func (f *fixture) until(request apply.Request, good func(apply.Result) bool) apply.Result {
	f.t.Helper()
	for {
		result := f.Apply(f.t.Context(), request)
		if good(result) {
			return result
		}
		select {
		case <-f.notified:
		case <-time.After(patience):
			require.Failf(f.t, "no notice any more", "%+v", result)
		}
	}
}

func clean(r apply.Result) bool {
	return r.Err == nil && len(r.Problems) == 0 && len(r.Waiting) == 0
}

// assertQuiet checks that nothing notifies of what was written so far: an edit that
// is drift comes after all of it in the same watch, and its notice is the first.
func (f *fixture) assertQuiet(marker string) {
	f.t.Helper()
	f.edit("configmaps", marker, `{"data":{"key":"edited"}}`)
	f.awaitNotice()
	assert.Empty(f.t, f.notified, "only the edit is told")
}

// configMap is a ConfigMap without a namespace.
func configMap(t testing.TB, name, value string) manifest.Object {
	return parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}, data: {key: "+value+"}}")
}

func parse(t testing.TB, text string) manifest.Object {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(json))
	return manifest.Object{Unstructured: object, File: object.GetName() + ".yaml", Line: 1}
}

// resource returns the resource of a kind of the core group, or of apps for
// deployments.
func resource(name string) schema.GroupVersionResource {
	if name == "deployments" {
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: name}
	}
	return schema.GroupVersionResource{Version: "v1", Resource: name}
}

// live reads an object of the fixture's namespace, nil where there is none.
func (f *fixture) live(kind, name string) *unstructured.Unstructured {
	f.t.Helper()
	object, err := f.admin.dynamic.Resource(resource(kind)).Namespace(f.namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return object
}

func (f *fixture) value(name string) string {
	f.t.Helper()
	object := f.live("configmaps", name)
	require.NotNil(f.t, object, name)
	value, _, _ := unstructured.NestedString(object.Object, "data", "key")
	return value
}

// edit patches an object as kubectl edit would.
func (f *fixture) edit(kind, name, patch string) {
	f.t.Helper()
	_, err := f.admin.dynamic.Resource(resource(kind)).Namespace(f.namespace).Patch(f.t.Context(), name,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(f.t, err)
}

func (f *fixture) delete(kind, name string) {
	f.t.Helper()
	err := f.admin.dynamic.Resource(resource(kind)).Namespace(f.namespace).Delete(f.t.Context(), name, metav1.DeleteOptions{})
	require.NoError(f.t, err)
}

// create creates an object as another user.
func (f *fixture) create(kind string, object manifest.Object) {
	f.t.Helper()
	_, err := f.admin.dynamic.Resource(resource(kind)).Namespace(f.namespace).Create(context.WithoutCancel(f.t.Context()),
		object.Unstructured, metav1.CreateOptions{FieldManager: "kubectl-create"})
	require.NoError(f.t, err)
}

const mergePatch = types.MergePatchType

// cleanup returns a context for after the test, whose own one has ended.
func cleanup(t testing.TB) context.Context { return context.WithoutCancel(t.Context()) }

var deleteNow = metav1.DeleteOptions{}
