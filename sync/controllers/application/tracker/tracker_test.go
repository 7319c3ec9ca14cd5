package tracker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"

	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }

const (
	limit = env.Limit
	often = 10 * time.Millisecond
	mark  = "example.com/mark"
)

var (
	configMaps = schema.GroupKind{Kind: "ConfigMap"}
	someone    = types.NamespacedName{Namespace: "a", Name: "b"}
)

// world is that of one test: a namespace, and a tracker of a user of its own.
type world struct {
	*tracker.Tracker
	t         *testing.T
	cluster   *env.Cluster
	admin     kubernetes.Interface
	namespace string
	user      string

	mu   sync.Mutex
	told []string
}

type target struct {
	mapper   meta.RESTMapper
	metadata metadata.Interface
	dynamic  dynamic.Interface
}

func (t target) Mapper() meta.RESTMapper      { return t.mapper }
func (t target) Metadata() metadata.Interface { return t.metadata }
func (t target) Dynamic() dynamic.Interface   { return t.dynamic }

func newWorld(t *testing.T, through ...func(meta.ResettableRESTMapper) meta.RESTMapper) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "tracker", NoControllers: true, Audit: true})
	w := &world{t: t, cluster: c, namespace: c.Namespace(t)}
	w.user = "tracker-" + w.namespace
	config, err := c.AddUser(w.user, "system:masters")
	require.NoError(t, err)
	w.admin, err = kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	as, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	discovered := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(as.Discovery()))
	on := target{mapper: discovered}
	for _, wrap := range through {
		on.mapper = wrap(discovered)
	}
	on.metadata, err = metadata.NewForConfig(config)
	require.NoError(t, err)
	on.dynamic, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	w.Tracker = tracker.New(t.Context(), on, tracker.Options{
		Annotations: []string{mark},
		Index: func(o *tracker.Object) []string {
			if value := o.Annotations[mark]; value != "" {
				return []string{value}
			}
			return nil
		},
		Changed: w.changed,
		Linger:  time.Millisecond,
	})
	return w
}

func (w *world) changed(before, after *tracker.Object) {
	what := "changed "
	switch {
	case before == nil:
		what, before = "came ", after
	case after == nil:
		what = "went "
	}
	if before.Namespace != w.namespace || before.Name == "kube-root-ca.crt" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, what+before.Name)
}

func (w *world) awaitTold(wanted ...string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return assert.ObjectsAreEqual(wanted, w.told)
	}, limit, often, "%v", wanted)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = nil
}

func (w *world) awaitPhase(gk schema.GroupKind, phase tracker.Phase) tracker.State {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.State(gk).Phase == phase }, limit, often)
	return w.State(gk)
}

func (w *world) create(name string, annotations map[string]string) *corev1.ConfigMap {
	w.t.Helper()
	o, err := w.admin.CoreV1().ConfigMaps(w.namespace).Create(w.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return o
}

func (w *world) ref(name string) tracker.Ref {
	return tracker.Ref{GroupKind: configMaps, NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: name}}
}

// A64, A97: a kind is watched from when it is first wanted, and few words are kept.
func TestTracker_knowsWhatIsWanted(t *testing.T) {
	w := newWorld(t)
	w.create("before", map[string]string{mark: w.namespace, "other": "y"})
	w.Want(someone, sets.New(configMaps))
	assert.Equal(t, "configmaps", w.awaitPhase(configMaps, tracker.Watched).Resource.Resource)
	o := w.Get(w.ref("before"))
	require.NotNil(t, o)
	assert.Equal(t, map[string]string{mark: w.namespace}, o.Annotations)
	assert.Len(t, w.By(w.namespace), 1)

	after := w.create("after", nil)
	require.Eventually(t, func() bool { return w.Get(w.ref("after")) != nil }, limit, often)
	after.Annotations = map[string]string{mark: w.namespace}
	after, err := w.admin.CoreV1().ConfigMaps(w.namespace).Update(t.Context(), after, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(w.By(w.namespace)) == 2 }, limit, often)
	require.NoError(t, w.admin.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), "before", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return len(w.By(w.namespace)) == 1 }, limit, often)
	assert.Equal(t, after.ResourceVersion, w.Get(w.ref("after")).Version)
}

// A kind that is not wanted any more is dropped, with all that is known of it.
func TestTracker_letsGo(t *testing.T) {
	w := newWorld(t)
	w.create("one", map[string]string{mark: w.namespace})
	other := types.NamespacedName{Name: "other"}
	w.Want(someone, sets.New(configMaps))
	w.Want(other, sets.New(configMaps))
	w.awaitPhase(configMaps, tracker.Watched)
	w.Want(someone, nil)
	assert.Equal(t, []types.NamespacedName{other}, w.Wanting(configMaps))
	w.Want(other, nil)
	w.awaitPhase(configMaps, tracker.Starting)
	assert.Nil(t, w.Get(w.ref("one")))
	assert.Empty(t, w.By(w.namespace))

	w.Want(someone, sets.New(configMaps))
	w.awaitPhase(configMaps, tracker.Watched)
	assert.NotNil(t, w.Get(w.ref("one")))
}

// The answer to a write counts at once; what the watch shows of it later is no news; and an
// answer that comes too late brings nothing back to life.
func TestTracker_believesAnswers(t *testing.T) {
	w := newWorld(t)
	w.Want(someone, sets.New(configMaps))
	w.awaitPhase(configMaps, tracker.Watched)
	o := w.create("one", nil)
	w.awaitTold("came one")

	newer := o.DeepCopy()
	newer.ResourceVersion = o.ResourceVersion + "0"
	newer.Annotations = map[string]string{mark: w.namespace}
	w.Written(configMaps, newer)
	w.awaitTold("changed one")
	assert.Len(t, w.By(w.namespace), 1)
	w.Written(configMaps, o)
	assert.Len(t, w.By(w.namespace), 1, "what is older is not believed")

	require.NoError(t, w.admin.CoreV1().ConfigMaps(w.namespace).Delete(context.Background(), "one", metav1.DeleteOptions{}))
	w.awaitTold("went one")
	w.Written(configMaps, newer)
	assert.Nil(t, w.Get(w.ref("one")))
}

// C7: cluster-scoped kinds are reported, and not watched; so are kinds that are not served.
func TestTracker_kindsThatAreNotWatched(t *testing.T) {
	w := newWorld(t)
	namespaces, widgets := schema.GroupKind{Kind: "Namespace"}, schema.GroupKind{Group: "example.com", Kind: "Widget"}
	w.Want(someone, sets.New(namespaces, widgets))
	w.awaitPhase(namespaces, tracker.ClusterScoped)
	state := w.awaitPhase(widgets, tracker.Unknown)
	assert.EqualError(t, state.Err, "the cluster does not serve kind Widget.example.com: install what defines it")
	assert.Zero(t, w.Count(namespaces, ""))
}
