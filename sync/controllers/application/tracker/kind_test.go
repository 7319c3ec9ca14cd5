package tracker_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/sync/controllers/application/tracker"
)

// definition is a CustomResourceDefinition of a kind Gadget, in a group of the test's own.
type definition struct {
	*world
	group  string
	client dynamic.Interface
}

func newDefinition(w *world) *definition {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.cluster.RESTConfig())
	require.NoError(w.t, err)
	return &definition{world: w, group: w.namespace + ".example.com", client: client}
}

func (d *definition) kind() schema.GroupKind {
	return schema.GroupKind{Group: d.group, Kind: "Gadget"}
}

func (d *definition) crds() dynamic.ResourceInterface {
	return d.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// create defines the kind with a scope and these versions, of which the first is stored.
func (d *definition) create(scope string, versions ...string) {
	d.t.Helper()
	list := make([]any, 0, len(versions))
	for i, version := range versions {
		list = append(list, map[string]any{
			"name": version, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets." + d.group},
		"spec": map[string]any{
			"group": d.group, "scope": scope, "versions": list,
			"names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
		},
	}}
	_, err := d.crds().Create(d.t.Context(), crd, metav1.CreateOptions{})
	require.NoError(d.t, err)
}

// serve says whether a version is served.
func (d *definition) serve(version string, served bool) {
	d.t.Helper()
	crd, err := d.crds().Get(d.t.Context(), "gadgets."+d.group, metav1.GetOptions{})
	require.NoError(d.t, err)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(d.t, err)
	for _, v := range versions {
		if entry := v.(map[string]any); entry["name"] == version {
			entry["served"] = served
		}
	}
	require.NoError(d.t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	_, err = d.crds().Update(d.t.Context(), crd, metav1.UpdateOptions{})
	require.NoError(d.t, err)
}

// remove deletes the definition and waits until it is gone.
func (d *definition) remove() {
	d.t.Helper()
	require.NoError(d.t, d.crds().Delete(d.t.Context(), "gadgets."+d.group, metav1.DeleteOptions{}))
	require.Eventually(d.t, func() bool {
		_, err := d.crds().Get(d.t.Context(), "gadgets."+d.group, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, limit, often)
}

// gadget creates an object as soon as the API server serves the version.
func (d *definition) gadget(version, name string) *unstructured.Unstructured {
	d.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": d.group + "/" + version, "kind": "Gadget", "metadata": map[string]any{"name": name},
	}}
	var made *unstructured.Unstructured
	require.Eventually(d.t, func() (created bool) {
		var err error
		made, err = d.gadgets(version).Create(d.t.Context(), o, metav1.CreateOptions{})
		return err == nil
	}, limit, often)
	return made
}

func (d *definition) gadgets(version string) dynamic.ResourceInterface {
	return d.client.Resource(schema.GroupVersionResource{Group: d.group, Version: version, Resource: "gadgets"}).Namespace(d.namespace)
}

func (d *definition) ref(name string) tracker.Ref {
	return tracker.Ref{GroupKind: d.kind(), NamespacedName: types.NamespacedName{Namespace: d.namespace, Name: name}}
}

// A63: a kind that was found cluster-scoped, and is redefined as a namespaced one, is
// noticed; and so is one that goes.
func TestKind_changesItsScope(t *testing.T) {
	w := newWorld(t)
	d := newDefinition(w)
	d.create("Cluster", "v1")
	w.Want(someone, sets.New(d.kind()))
	w.awaitPhase(d.kind(), tracker.ClusterScoped)

	d.remove()
	state := w.awaitPhase(d.kind(), tracker.Unknown)
	require.EqualError(t, state.Err, "the cluster does not serve kind Gadget."+d.group+": install what defines it")
	d.create("Namespaced", "v1")
	w.awaitPhase(d.kind(), tracker.Watched)
	d.gadget("v1", "one")
	w.awaitTold("came one")

	d.remove()
	w.awaitTold("went one")
	w.awaitPhase(d.kind(), tracker.Unknown)
	d.create("Cluster", "v1")
	w.awaitPhase(d.kind(), tracker.ClusterScoped)
}

// lagging is a mapper that, from a moment on, discovers once more what is no longer there, and keeps
// it until it is reset again: API servers drop a kind from discovery some time after its definition.
type lagging struct {
	meta.ResettableRESTMapper
	mu           sync.Mutex
	later, cache *meta.RESTMapping
}

// lag makes the next discovery show what is there now.
func (l *lagging) lag(t *testing.T, gk schema.GroupKind) {
	t.Helper()
	var now *meta.RESTMapping
	require.Eventually(t, func() (found bool) {
		l.ResettableRESTMapper.Reset()
		var err error
		now, err = l.ResettableRESTMapper.RESTMapping(gk)
		return err == nil
	}, limit, often)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.later = now
}

func (l *lagging) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cache, l.later = l.later, nil
	l.ResettableRESTMapper.Reset()
}

func (l *lagging) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	l.mu.Lock()
	cached := l.cache
	l.mu.Unlock()
	if cached != nil {
		return cached, nil
	}
	return l.ResettableRESTMapper.RESTMapping(gk, versions...)
}

// A63: what discovery goes on saying of a definition that is gone is not believed of the next one.
func TestKind_changesItsScopeBeforeDiscoveryKnows(t *testing.T) {
	mapper := &lagging{}
	w := newWorld(t, func(discovered meta.ResettableRESTMapper) meta.RESTMapper {
		mapper.ResettableRESTMapper = discovered
		return mapper
	})
	d := newDefinition(w)
	d.create("Namespaced", "v1")
	w.Want(someone, sets.New(d.kind()))
	w.awaitPhase(d.kind(), tracker.Watched)
	d.gadget("v1", "one")
	w.awaitTold("came one")

	mapper.lag(t, d.kind())
	d.remove()
	w.awaitPhase(d.kind(), tracker.Unknown)
	d.create("Cluster", "v1")
	w.awaitPhase(d.kind(), tracker.ClusterScoped)
}

// A63, A64: a version that is not served any more, while another is, takes nothing away: the
// watch moves on, and what it shows is the same.
func TestKind_movesToAnotherVersion(t *testing.T) {
	w := newWorld(t)
	d := newDefinition(w)
	d.create("Namespaced", "v1", "v1beta1")
	w.Want(someone, sets.New(d.kind()))
	assert.Equal(t, "v1", w.awaitPhase(d.kind(), tracker.Watched).Resource.Version)
	d.gadget("v1", "one")
	w.awaitTold("came one")
	before := w.Get(d.ref("one"))

	d.serve("v1", false)
	// A reader of an object sees the change before the watch does.
	require.Eventually(t, func() bool {
		_, err := d.gadgets("v1").Get(t.Context(), "one", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, limit, often)
	w.Missing(schema.GroupVersionResource{Group: d.group, Version: "v1", Resource: "gadgets"})
	require.Eventually(t, func() bool {
		assert.Equal(t, tracker.Watched, w.State(d.kind()).Phase, "it is known all the time")
		assert.Same(t, before, w.Get(d.ref("one")))
		return w.State(d.kind()).Resource.Version == "v1beta1"
	}, limit, often)
	d.gadget("v1beta1", "two")
	w.awaitTold("came two")
	assert.Same(t, before, w.Get(d.ref("one")), "nothing was told of it")

	d.serve("v1beta1", false)
	w.Missing(schema.GroupVersionResource{Group: d.group, Version: "v1beta1", Resource: "gadgets"})
	w.awaitPhase(d.kind(), tracker.Unknown)
	require.Eventually(t, func() bool { return w.Count(d.kind(), "") == 0 }, limit, often)
	d.serve("v1", true)
	w.awaitPhase(d.kind(), tracker.Watched)
	require.Eventually(t, func() bool { return w.Count(d.kind(), w.namespace) == 2 }, limit, often)
}
