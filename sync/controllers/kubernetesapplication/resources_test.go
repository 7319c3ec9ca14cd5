package kubernetesapplication_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// W9, W10, W24, W28, W38, W39
func TestResources_areMadeFromTemplates(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	one := template(t, "one", "{apiVersion: v1, kind: ConfigMap, metadata: {name: remote, namespace: far}, data: {key: value}}")
	one.Metadata.Namespace = "ignored"
	one.Metadata.Labels = map[string]string{"app": "web"}
	one.Metadata.Annotations = map[string]string{v1alpha1.AdoptAnnotation: "true"}
	one.Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "sql"}}
	app := w.submit(application("web", one, configMap(t, "two")))
	w.awaitState(app, v1alpha1.StateScheduled)

	kar := w.resource("one")
	assert.Equal(t, "web", kar.Labels["app"])
	assert.Equal(t, "web", kar.Labels[v1alpha1.KubernetesApplicationLabel])
	assert.Equal(t, "true", kar.Annotations[v1alpha1.AdoptAnnotation])
	assert.True(t, metav1.IsControlledBy(kar, app))
	assert.Equal(t, "oslo", kar.Spec.ClusterName)
	assert.Equal(t, one.Spec.Secrets, kar.Spec.Secrets)
	object, err := kar.Spec.Template.Object()
	require.NoError(t, err)
	assert.Equal(t, parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: remote, namespace: far}, data: {key: value}}"), object)

	labelled := &v1alpha1.KubernetesApplicationResourceList{}
	require.NoError(t, w.Client.List(t.Context(), labelled, client.InNamespace(w.Namespace), client.MatchingLabels{"app": "web"}))
	assert.Len(t, labelled.Items, 1)
}

// W38, W40, W47, W58
func TestResources_followTheTemplates(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	app := w.submit(application("web", configMap(t, "stays"), configMap(t, "goes")))
	w.awaitState(app, v1alpha1.StateScheduled)
	goes, stays := w.resource("goes"), w.resource("stays")

	changed := template(t, "stays", "{apiVersion: v1, kind: ConfigMap, metadata: {name: stays}, data: {key: other}}")
	hub.Change(w.World, app, func(app *v1alpha1.KubernetesApplication) {
		app.Spec.ResourceTemplates = []v1alpha1.ResourceTemplate{changed, configMap(t, "comes")}
	})
	w.resource("comes")
	require.True(t, w.Eventually(func() bool {
		return w.Exists(stays, "stays") && string(stays.Spec.Template.Raw) == string(changed.Spec.Template.Raw)
	}))
	require.True(t, w.Eventually(func() bool { return w.Exists(goes, "goes") && !goes.DeletionTimestamp.IsZero() }))
	hub.Await(w.World, app, "2 are desired", func(app *v1alpha1.KubernetesApplication) bool { return app.Status.DesiredResources == 2 })
}

// W9: labels and annotations come and go with the template; those of others stay.
func TestResources_keepWhatOthersWrite(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	one := configMap(t, "one")
	one.Metadata.Labels = map[string]string{"app": "web", "tier": "front"}
	one.Metadata.Annotations = map[string]string{"note": "ours"}
	app := w.submit(application("web", one))
	kar := w.resource("one")
	hub.Change(w.World, kar, func(kar *v1alpha1.KubernetesApplicationResource) {
		kar.Labels["theirs"], kar.Annotations["theirs"] = "kept", "kept"
	})
	hub.Change(w.World, app, func(app *v1alpha1.KubernetesApplication) {
		app.Spec.ResourceTemplates[0].Metadata.Labels = map[string]string{"app": "blog"}
		app.Spec.ResourceTemplates[0].Metadata.Annotations = nil
	})
	require.True(t, w.Eventually(func() bool { return w.Exists(kar, "one") && kar.Labels["app"] == "blog" }))
	assert.NotContains(t, kar.Labels, "tier")
	assert.NotContains(t, kar.Annotations, "note")
	assert.Equal(t, "kept", kar.Labels["theirs"])
	assert.Equal(t, "kept", kar.Annotations["theirs"])
}

// W38, W45: what others change of what the template says is corrected at once, and what they
// delete comes again.
func TestResources_arePutRight(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	w.submit(application("web", configMap(t, "one")))
	kar := w.resource("one")
	want := string(kar.Spec.Template.Raw)
	hub.Change(w.World, kar, func(kar *v1alpha1.KubernetesApplicationResource) {
		kar.Spec.Template = template(t, "one", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {key: theirs}}").Spec.Template
		kar.OwnerReferences = nil
	})
	require.True(t, w.Eventually(func() bool {
		return w.Exists(kar, "one") && string(kar.Spec.Template.Raw) == want && len(kar.OwnerReferences) == 1
	}))

	gone := kar.UID
	require.NoError(t, w.Client.Delete(t.Context(), kar))
	w.release(kar)
	require.True(t, w.Eventually(func() bool { return w.Exists(kar, "one") && kar.UID != gone && kar.DeletionTimestamp.IsZero() }))
}

// W40: a name that left and comes back for another object gets a resource of its own, when
// the one before is gone.
func TestResources_aNameComesBackForAnotherObject(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	app := w.submit(application("web", configMap(t, "one"), configMap(t, "two")))
	before := w.resource("two")
	hub.Change(w.World, app, func(app *v1alpha1.KubernetesApplication) {
		app.Spec.ResourceTemplates = app.Spec.ResourceTemplates[:1]
	})
	hub.Change(w.World, app, func(app *v1alpha1.KubernetesApplication) {
		app.Spec.ResourceTemplates = append(app.Spec.ResourceTemplates, template(t, "two", "{apiVersion: v1, kind: Secret, metadata: {name: two}}"))
	})
	kar := &v1alpha1.KubernetesApplicationResource{}
	require.True(t, w.Eventually(func() bool { return w.Exists(kar, "two") && !kar.DeletionTimestamp.IsZero() }))
	assert.Equal(t, before.UID, kar.UID)
	w.release(kar)
	require.True(t, w.Eventually(func() bool { return w.Exists(kar, "two") && kar.Spec.Template.Kind == "Secret" }))
}

// A request to reconcile reaches every resource, once.
func TestResources_areAskedToReconcile(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	app := w.submit(application("web", configMap(t, "one")))
	w.awaitState(app, v1alpha1.StateScheduled)
	hub.Reconcile(w.World, app)
	kar := w.resource("one")
	assert.Equal(t, app.Annotations[v1alpha1.ReconcileAtAnnotation], kar.Annotations[v1alpha1.ReconcileAtAnnotation])
	hub.Change(w.World, kar, func(kar *v1alpha1.KubernetesApplicationResource) {
		kar.Annotations[v1alpha1.ReconcileAtAnnotation] = "by hand"
	})
	w.say("one", "")
	w.awaitState(app, v1alpha1.StateSubmitted)
	assert.Equal(t, "by hand", w.resource("one").Annotations[v1alpha1.ReconcileAtAnnotation])
}

// W38, P12: one resource that the hub refuses does not keep the others from being made.
func TestResources_refusedByTheHub(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	quota := &corev1.ResourceQuota{ObjectMeta: named("one"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/kubernetesapplicationresources.apps.waybill.dev": *quantity(1), "count/services": *quantity(0)},
	}}
	w.Create(quota)
	require.True(t, w.Eventually(func() bool {
		probe := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "probe"}}
		probe.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		err := w.Client.Create(t.Context(), probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "exceeded quota: one")
	}), "the API server does not know the quota")
	app := w.submit(application("web", configMap(t, "one"), configMap(t, "two")))
	message := hub.AwaitReason(w.World, app, v1alpha1.ResourcesFailedReason)
	assert.Contains(t, message, "exceeded quota: one")
	list := &v1alpha1.KubernetesApplicationResourceList{}
	require.NoError(t, w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)))
	assert.Len(t, list.Items, 1)
	require.NoError(t, w.Client.Delete(t.Context(), quota))
	w.resource("one")
	w.resource("two")
}
