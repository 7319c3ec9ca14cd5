package application_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// A62, A65, A67, C42: components get an ownerReference, those that were there before the
// Application and those that come later.
func TestOwnership_isGiven(t *testing.T) {
	w := newWorld(t)
	before, after := configMap(member("before")), configMap(member("after"))
	w.Create(before)
	app := shop(named("ConfigMap", "before"), named("ConfigMap", "after"))
	w.Create(app)
	w.awaitOwned(before, app, true)
	w.Create(after)
	w.awaitOwned(after, app, true)

	assert.Equal(t, []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind, Name: "shop", UID: app.UID,
		Controller: ptr.To(false), BlockOwnerDeletion: ptr.To(false),
	}}, after.OwnerReferences)
	hub.AwaitReady(w.World, app)
	assert.True(t, component(app, "ConfigMap", "before").Owned)
	assert.Contains(t, app.Finalizers, v1alpha1.OwnershipFinalizer)
}

// A66, A78, A79, A80, C7: what is no component any more loses the reference, for whatever
// reason it is none.
func TestOwnership_isTakenBack(t *testing.T) {
	for name, change := range map[string]func(w *world, app *v1alpha1.Application, o *corev1.ConfigMap){
		"label changed": func(w *world, _ *v1alpha1.Application, o *corev1.ConfigMap) {
			hub.Change(w.World, o, func(o *corev1.ConfigMap) { o.Labels["app"] = "other" })
		},
		"annotation removed and label changed": func(w *world, _ *v1alpha1.Application, o *corev1.ConfigMap) {
			hub.Change(w.World, o, func(o *corev1.ConfigMap) { o.Annotations, o.Labels = nil, nil })
		},
		"annotation emptied": func(w *world, _ *v1alpha1.Application, o *corev1.ConfigMap) {
			hub.Change(w.World, o, func(o *corev1.ConfigMap) { o.Annotations[v1alpha1.ApplicationAnnotation] = "" })
		},
		"annotation pointed elsewhere": func(w *world, _ *v1alpha1.Application, o *corev1.ConfigMap) {
			hub.Change(w.World, o, func(o *corev1.ConfigMap) { o.Annotations[v1alpha1.ApplicationAnnotation] = "nobody" })
		},
		"not listed any more": func(w *world, app *v1alpha1.Application, _ *corev1.ConfigMap) {
			hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Components = app.Spec.Components[:1] })
		},
		"kind not listed any more": func(w *world, app *v1alpha1.Application, _ *corev1.ConfigMap) {
			hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Components = nil })
		},
		"observed only": func(w *world, app *v1alpha1.Application, _ *corev1.ConfigMap) {
			hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Ownership = v1alpha1.OwnershipObserve })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			another := namespaceUID(w)
			app := shop(named("Secret", "none"), named("ConfigMap", "settings"))
			w.Create(app)
			settings := w.keptSettings()
			w.awaitOwned(settings, app, true)
			hub.Await(w.World, app, "not reported as owned", func(app *v1alpha1.Application) bool {
				return component(app, "ConfigMap", "settings").Owned
			})

			change(w, app, settings)
			w.awaitOwned(settings, app, false)
			require.True(t, refersTo(settings, another), "the references of others stay")
			hub.Await(w.World, app, "still reported as owned", func(app *v1alpha1.Application) bool {
				return !component(app, "ConfigMap", "settings").Owned && app.Status.ObservedGeneration == app.Generation
			})
		})
	}
}

// C8, C42: an Application that observes owns nothing and holds nothing.
func TestOwnership_observe(t *testing.T) {
	w := newWorld(t)
	settings := configMap(member("settings"))
	w.Create(settings)
	app := shop(named("ConfigMap", "settings"))
	app.Spec.Ownership = v1alpha1.OwnershipObserve
	w.Create(app)
	hub.AwaitReady(w.World, app)
	assert.False(t, component(app, "ConfigMap", "settings").Owned)
	assert.Empty(t, app.Finalizers)

	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Ownership = v1alpha1.OwnershipOwn })
	w.awaitOwned(settings, app, true)
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Ownership = v1alpha1.OwnershipObserve })
	w.awaitOwned(settings, app, false)
	hub.Await(w.World, app, "still held", func(app *v1alpha1.Application) bool { return len(app.Finalizers) == 0 })
}

// A70: what has a controller of its own is installed, and gets no second owner: it goes with
// the top-level object.
func TestOwnership_topLevelObjectsOnly(t *testing.T) {
	w := newWorld(t)
	web := deployment(member("web"), 1)
	web.Spec.Template.Labels["app"] = "shop"
	web.Spec.Template.Annotations = annotated()
	w.Create(web)
	app := shop(deploymentNamed("web"), named("Pod", ""))
	w.Create(app)
	w.awaitComponents(app, "2/2")
	hub.AwaitReady(w.World, app)
	pods := &corev1.PodList{}
	require.NoError(t, w.Client.List(t.Context(), pods, inNamespace(w)))
	require.Len(t, pods.Items, 1)
	assert.False(t, refersTo(&pods.Items[0], app.UID))
	c := component(app, "Pod", pods.Items[0].Name)
	assert.True(t, c.Installed)
	assert.Contains(t, c.Message, "is controlled by ReplicaSet")

	w.delete(app)
	w.AwaitGone(&appsv1.Deployment{}, "web")
	w.AwaitGone(&corev1.Pod{}, pods.Items[0].Name)
}

// C7: cluster-scoped objects are never components, so they are never owned.
func TestOwnership_neverClusterScoped(t *testing.T) {
	w := newWorld(t)
	role := &rbacv1.ClusterRole{ObjectMeta: member(w.Namespace)}
	w.Create(role)
	app := shop(v1alpha1.ApplicationComponent{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: w.Namespace})
	w.Create(app)
	w.awaitComponents(app, "0/1")
	assert.Contains(t, component(app, "ClusterRole", w.Namespace).Message, "cluster-scoped")
	require.True(t, w.ExistsIn("", role, w.Namespace))
	assert.Empty(t, role.OwnerReferences)
}

// A57: a reference to an Application of that name which is no more does not count, and is
// replaced.
func TestOwnership_ofApplicationMadeAnew(t *testing.T) {
	w := newWorld(t)
	settings := w.keptSettings()
	first := shop(named("ConfigMap", "settings"))
	w.Create(first)
	w.awaitOwned(settings, first, true)
	require.NoError(t, w.Client.Delete(t.Context(), first, orphan()))
	w.AwaitGone(&v1alpha1.Application{}, "shop")
	hub.Change(w.World, settings, func(o *corev1.ConfigMap) {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind, Name: "shop", UID: "gone",
		})
	})

	second := shop(named("ConfigMap", "settings"))
	w.Create(second)
	w.awaitOwned(settings, second, true)
	assert.False(t, refersTo(settings, types.UID("gone")))
	hub.AwaitReady(w.World, second)
}

// A70, A65: objects that are deleted and recreated with another UID are owned again.
func TestOwnership_ofObjectMadeAnew(t *testing.T) {
	w := newWorld(t)
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	for range 3 {
		settings := configMap(member("settings"))
		w.Create(settings)
		w.awaitOwned(settings, app, true)
		w.awaitComponents(app, "1/1")
		w.delete(settings)
		w.awaitComponents(app, "0/1")
	}
}

// A controller that removes what we write is reported, instead of being overwritten all the time.
func TestOwnership_tellsOfAFight(t *testing.T) {
	w := newAgentWorld(t, right("", "configmaps"))
	settings := configMap(member("settings"))
	w.Create(settings)
	mark := w.mark()
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	require.True(t, w.Eventually(func() bool {
		hub.Change(w.World, settings, func(o *corev1.ConfigMap) { o.OwnerReferences = nil })
		return w.Exists(app, "shop") && reasonOf(app, v1alpha1.ReadyCondition) == v1alpha1.OwnershipFailedReason
	}), "%+v", app.Status)
	assert.Equal(t, "cannot be owned: another field manager keeps reverting it; corrections back off; see its metadata.managedFields",
		component(app, "ConfigMap", "settings").Message)
	patches := slices.DeleteFunc(w.requests(mark, w.agent()), func(r env.Request) bool { return r.Resource != "configmaps" })
	assert.Len(t, patches, 4)
}
