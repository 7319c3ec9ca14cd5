package kubernetesapplication_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// W7, W11, W36, W60, C40
func TestSchedule_onceToAClusterThatMatches(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", map[string]string{"region": "north"})
	w.addCluster("rome", map[string]string{"region": "south"})
	app := application("web", configMap(t, "web"))
	app.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"south", "west"}},
	}}
	w.awaitState(w.submit(app), v1alpha1.StateScheduled)
	assert.Equal(t, "rome", app.Spec.ClusterName)
	assert.Equal(t, "rome", app.Status.Cluster)
	assert.True(t, conditions.IsTrue(app, v1alpha1.ScheduledCondition))
	assert.Equal(t, "rome", w.resource("web").Spec.ClusterName)

	rome := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "rome"}}
	hub.Change(w.World, rome, func(k *v1alpha1.KubernetesCluster) { k.Labels["region"] = "north" })
	hub.Reconcile(w.World, app)
	assert.Equal(t, "rome", app.Spec.ClusterName, "placed once, it stays")
}

// W36: says of each cluster why not, and is scheduled as soon as one fits.
func TestSchedule_waitsForAClusterThatFits(t *testing.T) {
	for name, tc := range map[string]struct {
		hinder func(*world, *user) // makes the cluster, which has no labels, not fit
		says   string
		help   func(*world, *user)
	}{
		"labels": {
			func(*world, *user) {}, "the only cluster has no labels that match the selector",
			func(w *world, u *user) {
				change(w, u, func(k *v1alpha1.KubernetesCluster) { k.Labels = map[string]string{"region": "north"} })
			},
		},
		"paused": {
			func(w *world, u *user) {
				change(w, u, func(k *v1alpha1.KubernetesCluster) {
					k.Labels = map[string]string{"region": "north"}
					k.Spec.Paused = true
				})
			}, "no cluster fits: cluster oslo: it is paused",
			func(w *world, u *user) { change(w, u, func(k *v1alpha1.KubernetesCluster) { k.Spec.Paused = false }) },
		},
		"lost": {
			func(w *world, u *user) {
				change(w, u, func(k *v1alpha1.KubernetesCluster) { k.Labels = map[string]string{"region": "north"} })
				u.gate.Shut()
				w.process.Clusters.Probe(u.key)
				require.True(w.T, w.Eventually(func() bool { s, _ := w.process.Clusters.State(u.key); return s.Contacted && !s.Reachable }))
			}, "no cluster fits: cluster oslo: its API server does not answer",
			func(w *world, u *user) { require.NoError(w.T, u.gate.Open()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			oslo := w.addCluster("oslo", nil)
			tc.hinder(w, oslo)
			app := application("web", configMap(t, "web"))
			app.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "north"}}
			message := hub.AwaitReason(w.World, w.submit(app), v1alpha1.NoClusterFitsReason)
			assert.Contains(t, message, tc.says)
			assert.Equal(t, v1alpha1.StatePending, app.Status.State)
			assert.Equal(t, message, conditions.GetMessage(app, v1alpha1.ScheduledCondition))
			assert.False(t, w.Exists(&v1alpha1.KubernetesApplicationResource{}, "web"), "W37")
			tc.help(w, oslo)
			w.awaitState(app, v1alpha1.StateScheduled)
		})
	}
}

func change(w *world, u *user, edit func(*v1alpha1.KubernetesCluster)) {
	w.T.Helper()
	hub.Change(w.World, &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: u.key.Namespace, Name: u.key.Name}}, edit)
}

// W36: a cluster that comes later is as good.
func TestSchedule_waitsForTheFirstCluster(t *testing.T) {
	w := newWorld(t)
	app := w.submit(application("web", configMap(t, "web")))
	assert.Equal(t, "there is no cluster", hub.AwaitReason(w.World, app, v1alpha1.NoClusterFitsReason))
	w.addCluster("oslo", nil)
	w.awaitState(app, v1alpha1.StateScheduled)
}

func definition(w *world, kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	group := w.Namespace + ".example.com"
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: named(plural + "." + group),
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: plural[:len(plural)-1]},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}}}},
		},
	}
}

// W1, W44, C57: a kind that only the cluster knows, from when it knows it.
func TestSchedule_waitsForTheKind(t *testing.T) {
	w := newWorld(t)
	oslo := w.addCluster("oslo", nil)
	widget := template(t, "widget", "{apiVersion: "+w.Namespace+".example.com/v1, kind: Widget, metadata: {name: one}}")
	app := w.submit(application("web", configMap(t, "web"), widget))
	w.awaitMessage(app, "cluster oslo: it does not serve Widget in "+w.Namespace+".example.com/v1")

	inOslo, err := client.New(oslo.cluster.RESTConfig(), client.Options{Scheme: schemeWithDefinitions(t)})
	require.NoError(t, err)
	crd := definition(w, "Widget", "widgets")
	require.NoError(t, inOslo.Create(t.Context(), crd))
	t.Cleanup(func() { _ = inOslo.Delete(t.Context(), crd) })
	w.awaitState(app, v1alpha1.StateScheduled)
}

// define has a cluster serve a kind, until what is returned is called, or the end of the test.
func (w *world) define(c *env.Cluster, crd *apiextensionsv1.CustomResourceDefinition) (undefine func()) {
	w.T.Helper()
	inside, err := client.New(c.RESTConfig(), client.Options{Scheme: schemeWithDefinitions(w.T)})
	require.NoError(w.T, err)
	asking, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	require.NoError(w.T, err)
	served := func() bool {
		_, err := asking.ServerResourcesForGroupVersion(crd.Spec.Group + "/v1")
		require.True(w.T, err == nil || apierrors.IsNotFound(err), "%v", err)
		return err == nil
	}
	made := crd.DeepCopy()
	require.NoError(w.T, inside.Create(w.T.Context(), made))
	w.T.Cleanup(func() { _ = inside.Delete(context.Background(), made) })
	require.True(w.T, w.Eventually(served))
	return func() {
		require.NoError(w.T, inside.Delete(w.T.Context(), made))
		require.True(w.T, w.Eventually(func() bool { return !served() }))
	}
}

// W60, C57: a kind that is gone since it was seen is not taken to be served: the decision could
// not be taken back.
func TestSchedule_notWhereTheKindIsGone(t *testing.T) {
	w := newWorld(t)
	oslo := w.addCluster("oslo", nil)
	w.addOther("rome")
	crd := definition(w, "Wheel", "wheels")
	undefine := w.define(oslo.cluster, crd)
	w.define(w.Cluster, crd)
	require.True(t, w.Eventually(func() bool { return w.reachable("oslo", "rome") }))
	wheel := func(name string) v1alpha1.ResourceTemplate {
		return template(t, name, "{apiVersion: "+w.Namespace+".example.com/v1, kind: Wheel, metadata: {name: "+name+"}}")
	}
	full := application("full", configMap(t, "full-1"), configMap(t, "full-2"), configMap(t, "full-3"))
	full.Spec.ClusterName = "rome"
	w.awaitState(w.submit(full), v1alpha1.StateScheduled)
	first := w.awaitState(w.submit(application("first", wheel("first"))), v1alpha1.StateScheduled)
	require.Equal(t, "oslo", first.Spec.ClusterName, "where less is placed")

	undefine()
	second := w.awaitState(w.submit(application("second", wheel("second"))), v1alpha1.StateScheduled)
	assert.Equal(t, "rome", second.Spec.ClusterName)
}

// C57: what the application brings along is not asked for.
func TestSchedule_doesNotAskForWhatATemplateDefines(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	crd, err := v1alpha1.NewObjectTemplate(toUnstructured(t, definition(w, "Gadget", "gadgets")))
	require.NoError(t, err)
	app := w.submit(application("web",
		template(t, "gadget", "{apiVersion: "+w.Namespace+".example.com/v1, kind: Gadget, metadata: {name: one}}"),
		v1alpha1.ResourceTemplate{Metadata: v1alpha1.ResourceTemplateMetadata{Name: "crd"}, Spec: v1alpha1.ResourceTemplateSpec{Template: crd}},
	))
	w.awaitState(app, v1alpha1.StateScheduled)
}

// W36: applications that come at once are spread, however many workers there are, by how much
// is placed.
func TestSchedule_spreads(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"oslo", "rome", "bonn"} {
		w.addCluster(name, nil)
	}
	require.True(t, w.Eventually(func() bool { return w.reachable("oslo", "rome", "bonn") }))
	large := application("large", configMap(t, "large-1"), configMap(t, "large-2"), configMap(t, "large-3"), configMap(t, "large-4"))
	w.awaitState(w.submit(large), v1alpha1.StateScheduled)
	var apps []*v1alpha1.KubernetesApplication
	for i := range 8 {
		apps = append(apps, w.submit(application(fmt.Sprintf("app-%d", i), configMap(t, fmt.Sprintf("app-%d", i)))))
	}
	placed := map[string]int{large.Spec.ClusterName: 4}
	for _, app := range apps {
		placed[w.awaitState(app, v1alpha1.StateScheduled).Spec.ClusterName]++
	}
	assert.Equal(t, map[string]int{"oslo": 4, "rome": 4, "bonn": 4}, placed)
}

func (w *world) reachable(names ...string) bool {
	for _, name := range names {
		state, _ := w.process.Clusters.State(client.ObjectKey{Namespace: w.Namespace, Name: name})
		if !state.Reachable {
			return false
		}
	}
	return true
}

// C40: who names a cluster goes past the scheduler.
func TestSchedule_leavesAClusterThatIsNamed(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	w.addCluster("rome", map[string]string{"region": "south"})
	app := application("web", configMap(t, "web"))
	app.Spec.ClusterName = "rome"
	w.awaitState(w.submit(app), v1alpha1.StateScheduled)
	assert.Equal(t, "rome", w.resource("web").Spec.ClusterName)
	assert.Contains(t, app.Finalizers, v1alpha1.Finalizer)
}

// W7: clusters of other namespaces are not ours to use.
func TestSchedule_withinTheNamespace(t *testing.T) {
	other := newWorld(t)
	other.addCluster("oslo", nil)
	w := newWorld(t)
	app := w.submit(application("web", configMap(t, "web")))
	assert.Equal(t, "there is no cluster", hub.AwaitReason(w.World, app, v1alpha1.NoClusterFitsReason))
}
