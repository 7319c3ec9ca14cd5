package healthcache_test

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/controllers/application/healthcache"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }

const (
	limit = env.Limit
	often = 10 * time.Millisecond
)

// world is that of one test: a namespace, and the Cache of a user of its own.
type world struct {
	*healthcache.Cache
	t         *testing.T
	cluster   *env.Cluster
	admin     kubernetes.Interface
	namespace string
	user      string

	mu    sync.Mutex
	told  map[string]int
	count int
	// counted is how often the Cache asked how many objects there are.
	counted atomic.Int32
}

type target struct {
	metadata metadata.Interface
	dynamic  dynamic.Interface
}

func (t target) Metadata() metadata.Interface { return t.metadata }
func (t target) Dynamic() dynamic.Interface   { return t.dynamic }

func newWorld(t *testing.T, config func(*env.Cluster, string) *rest.Config) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "healthcache", Audit: true})
	w := &world{t: t, cluster: c, namespace: c.Namespace(t), told: map[string]int{}}
	w.user = "reader-" + w.namespace
	admin, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	w.admin = admin
	as := config(c, w.user)
	meta, err := metadata.NewForConfig(as)
	require.NoError(t, err)
	dyn, err := dynamic.NewForConfig(as)
	require.NoError(t, err)
	w.Cache = healthcache.New(t.Context(), target{meta, dyn}, healthcache.Options{
		Changed: func(ref tracker.Ref) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told[ref.Name]++
		},
		Count: func(schema.GroupKind, string) int {
			w.counted.Add(1)
			return w.count
		},
		Missing: func(r schema.GroupVersionResource) { w.t.Errorf("%s is told to be missing", r) },
	})
	return w
}

// administrator reads with all rights.
func administrator(c *env.Cluster, user string) *rest.Config {
	config, err := c.AddUser(user, "system:masters")
	if err != nil {
		return nil
	}
	return config
}

// claim creates a PersistentVolumeClaim, which stays Pending, and returns the query for it.
func (w *world) claim(name string) healthcache.Query {
	w.t.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.StorageClassName = new(string)
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim, err := w.admin.CoreV1().PersistentVolumeClaims(w.namespace).Create(w.t.Context(), claim, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return query("PersistentVolumeClaim", "persistentvolumeclaims", claim)
}

// pod creates a Pod, which is not scheduled.
func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	_, err := w.admin.CoreV1().ServiceAccounts(w.namespace).Create(w.t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		ServiceAccountName: name, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
	}}
	pod, err = w.admin.CoreV1().Pods(w.namespace).Create(w.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return pod
}

func query(kind, plural string, o metav1.Object) healthcache.Query {
	return healthcache.Query{
		Ref: tracker.Ref{
			GroupKind:      schema.GroupKind{Kind: kind},
			NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()},
		},
		Resource: schema.GroupVersionResource{Version: "v1", Resource: plural},
		UID:      o.GetUID(),
		Version:  o.GetResourceVersion(),
	}
}

func (w *world) await(q healthcache.Query, wanted health.Status) healthcache.Result {
	w.t.Helper()
	var result healthcache.Result
	require.Eventually(w.t, func() bool {
		var known bool
		result, known = w.Get(q)
		return known && result.Status == wanted
	}, limit, often, "%s is not %s", q.Name, wanted)
	return result
}

func (w *world) requests(since env.AuditMark) []string {
	w.t.Helper()
	got, err := w.cluster.Requests(w.t.Context(), since, env.ByUser(w.user), env.Accepted)
	require.NoError(w.t, err)
	var verbs []string
	for _, r := range got {
		verbs = append(verbs, r.Verb)
	}
	return verbs
}

func (w *world) mark() env.AuditMark {
	w.t.Helper()
	mark, err := w.cluster.AuditMark(w.t.Context())
	require.NoError(w.t, err)
	return mark
}

// What is known is not read again, until a caller has seen a newer version.
func TestCache_readsOncePerVersion(t *testing.T) {
	w := newWorld(t, administrator)
	pod := w.pod("data")
	q := query("Pod", "pods", pod)
	mark := w.mark()
	w.await(q, health.InProgress)
	for range 10 {
		w.Get(q)
	}
	assert.Equal(t, []string{"get"}, w.requests(mark))

	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod, err := w.admin.CoreV1().Pods(w.namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	w.await(query("Pod", "pods", pod), health.Current)
	assert.Equal(t, []string{"get", "get"}, w.requests(mark))
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.told["data"] == 2
	}, limit, often, "the callers that asked are notified")
}

// dam holds requests back until it is opened, so that a test can ask for much at once however
// slowly it runs.
type dam struct {
	next   http.RoundTripper
	opened chan struct{}
}

func (d *dam) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-d.opened:
		return d.next.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// dammed returns a world whose Cache has no answers before open is called.
func dammed(t *testing.T, behind func(http.RoundTripper) http.RoundTripper) (w *world, open func()) {
	t.Helper()
	d := &dam{opened: make(chan struct{})}
	w = newWorld(t, func(c *env.Cluster, user string) *rest.Config {
		config := administrator(c, user)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			d.next = behind(next)
			return d
		})
		return config
	})
	return w, func() { close(d.opened) }
}

// Many queries at once are one list, and its pages.
func TestCache_listsWhereManyAreWanted(t *testing.T) {
	w, open := dammed(t, func(next http.RoundTripper) http.RoundTripper { return next })
	var queries []healthcache.Query
	for i := range 120 {
		queries = append(queries, w.claim(fmt.Sprintf("data-%03d", i)))
	}
	w.count = len(queries)
	mark := w.mark()
	for _, q := range queries {
		w.Get(q)
	}
	open()
	for _, q := range queries {
		w.await(q, health.InProgress)
	}
	got := w.requests(mark)
	assert.Contains(t, got, "list")
	assert.Less(t, len(got), 20)
}

// A list that would show much more than is wanted is not worth it.
func TestCache_readsFewOfManyOneByOne(t *testing.T) {
	w := newWorld(t, administrator)
	var queries []healthcache.Query
	for i := range 60 {
		queries = append(queries, w.claim(fmt.Sprintf("data-%03d", i)))
	}
	w.count = 100 * len(queries)
	mark := w.mark()
	for _, q := range queries {
		w.Get(q)
	}
	for _, q := range queries {
		w.await(q, health.InProgress)
	}
	assert.NotContains(t, w.requests(mark), "list")
}

// stuck never answers lists of some kinds.
type stuck struct {
	next   http.RoundTripper
	begun  chan string
	ending atomic.Int32
}

func (s *stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := path.Base(r.URL.Path)
	if kind != "pods" && kind != "services" {
		return s.next.RoundTrip(r)
	}
	s.begun <- kind
	<-r.Context().Done()
	s.ending.Add(1)
	return nil, r.Context().Err()
}

// Kinds whose lists hang do not keep others from being read.
func TestCache_doesNotWaitForListsThatHang(t *testing.T) {
	server := &stuck{begun: make(chan string, 2)}
	w, open := dammed(t, func(next http.RoundTripper) http.RoundTripper {
		server.next = next
		return server
	})
	w.count = 120
	var queries []healthcache.Query
	for i := range 60 {
		queries = append(queries, w.claim(fmt.Sprintf("data-%03d", i)))
	}
	for i := range w.count {
		meta := &metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("none-%03d", i), UID: "none"}
		w.Get(query("Pod", "pods", meta))
		w.Get(query("Service", "services", meta))
	}
	open()
	first := env.Receive(t, server.begun, "nothing is listed")
	assert.ElementsMatch(t, []string{"pods", "services"}, []string{first, env.Receive(t, server.begun, "only one kind is listed")})
	w.counted.Store(0)
	for _, q := range queries {
		w.Get(q)
	}
	for _, q := range queries {
		w.await(q, health.InProgress)
	}
	assert.Zero(t, server.ending.Load(), "both lists still hang")
	assert.Zero(t, w.counted.Load(), "while no third kind may be listed, whether that was worth it is not worked out")
}

// C39: of what has no status an expression sees metadata alone, and its data is never asked for.
func TestCache_withoutStatusIsMetadata(t *testing.T) {
	asked := make(chan string, 10)
	w := newWorld(t, func(c *env.Cluster, user string) *rest.Config {
		config := administrator(c, user)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return accepting{next, asked} })
		return config
	})
	meta := metav1.ObjectMeta{Name: "password", Labels: map[string]string{"rotated": "yes"}}
	secret, err := w.admin.CoreV1().Secrets(w.namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	account, err := w.admin.CoreV1().ServiceAccounts(w.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := w.admin.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	expression, err := health.NewExpression("metadata.labels['rotated'] == 'yes'", "")
	require.NoError(t, err)
	for _, q := range []healthcache.Query{
		query("Secret", "secrets", secret), query("ServiceAccount", "serviceaccounts", account), query("ConfigMap", "configmaps", config),
	} {
		q.Expression = expression
		w.await(q, health.Current)
		assert.Contains(t, env.Receive(t, asked, "nothing is asked"), "as=PartialObjectMetadata", q.Kind)
	}
}

// accepting says what is asked for in each request.
type accepting struct {
	next  http.RoundTripper
	asked chan<- string
}

func (a accepting) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked <- r.Header.Get("Accept")
	return a.next.RoundTrip(r)
}

// Who may not read says so, and goes on once that is allowed; an object that is gone is none
// of its business.
func TestCache_withoutRights(t *testing.T) {
	w := newWorld(t, func(c *env.Cluster, user string) *rest.Config {
		config, err := c.AddUser(user)
		if err != nil {
			return nil
		}
		return config
	})
	q := w.claim("data")
	result := w.await(q, health.Unknown)
	assert.Contains(t, result.Message, `cannot get resource "persistentvolumeclaims"`)
	w.allow()
	w.await(q, health.InProgress)

	gone := w.claim("gone")
	require.NoError(t, w.admin.CoreV1().PersistentVolumeClaims(w.namespace).Delete(context.Background(), "gone", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := w.admin.CoreV1().PersistentVolumeClaims(w.namespace).Get(t.Context(), "gone", metav1.GetOptions{})
		return err != nil
	}, limit, often)
	mark := w.mark()
	_, known := w.Get(gone)
	assert.False(t, known)
	require.Eventually(t, func() bool { return slices.Equal(w.requests(mark), []string{"get"}) }, limit, often)
}

// allow grants the user of the test what it needs.
func (w *world) allow() {
	w.t.Helper()
	rights := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list"}}
	_, err := w.admin.RbacV1().Roles(w.namespace).Create(w.t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{rights},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	_, err = w.admin.RbacV1().RoleBindings(w.namespace).Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.user}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}
