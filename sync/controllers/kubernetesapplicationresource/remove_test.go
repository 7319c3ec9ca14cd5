package kubernetesapplicationresource_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// application creates an application with one template, with Secrets, scheduled to a cluster.
func (w *world) application(name, clusterName, template string, manifest v1alpha1.ObjectTemplate, secrets ...v1alpha1.ResourceSecretReference) *v1alpha1.KubernetesApplication {
	w.T.Helper()
	app := &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.KubernetesApplicationSpec{
			ClusterSelector: &metav1.LabelSelector{},
			ClusterName:     clusterName,
			ResourceTemplates: []v1alpha1.ResourceTemplate{{
				Metadata: v1alpha1.ResourceTemplateMetadata{Name: template},
				Spec:     v1alpha1.ResourceTemplateSpec{Template: manifest, Secrets: secrets},
			}},
		},
	}
	w.Create(app)
	return app
}

// controlled is a resource that an application controls, alive or not.
func controlled(kar *v1alpha1.KubernetesApplicationResource, app *v1alpha1.KubernetesApplication) *v1alpha1.KubernetesApplicationResource {
	kar.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(app, v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesApplicationKind))}
	return kar
}

// W53: the object and the copies of its Secrets go with the resource, no matter who deleted it while
// the application is there.
func TestRemove_takesEverythingAway(t *testing.T) {
	w := newWorld(t)
	w.secret("mysql", "one")
	kar := w.resource("web", w.berlin.configMap("web", "x"), "mysql")
	app := w.application("app", "berlin", "web", kar.Spec.Template)
	hub.AwaitReady(w.World, w.submit(controlled(kar, app)))
	w.berlin.awaitPassword("web-mysql", "one")

	require.NoError(t, w.Client.Delete(t.Context(), kar))
	w.AwaitGone(kar, "web")
	assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))
	assert.False(t, w.berlin.Exists(&corev1.Secret{}, "web-mysql"))
}

// W53: what another owner took over is left alone.
func TestRemove_onlyWhatIsOurs(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"))))
	hub.Change(w.berlin.World, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.berlin.Namespace, Name: "web"}}, func(cm *corev1.ConfigMap) {
		cm.Annotations[v1alpha1.OwnerAnnotation] = "other-hub/GitSync/a/b"
	})
	hub.AwaitReason(w.World, kar, v1alpha1.ObjectConflictReason)
	require.NoError(t, w.Client.Delete(t.Context(), kar))
	w.AwaitGone(kar, "web")
	assert.True(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))
}

// C11: the resource stays, and says so, until the object is gone from the cluster.
func TestRemove_waitsForTheRemoteEnd(t *testing.T) {
	w := newWorld(t)
	manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: " + w.berlin.Namespace + ", finalizers: [example.com/hold]}}"
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", manifest)))
	require.NoError(t, w.Client.Delete(t.Context(), kar))
	assert.Contains(t, hub.AwaitReason(w.World, kar, v1alpha1.DeletingReason), "ConfigMap "+w.berlin.Namespace+"/web")
	assert.Equal(t, v1alpha1.StateDeleting, kar.Status.State)
	assert.Equal(t, v1alpha1.DeletingReason, conditions.GetReason(kar, v1alpha1.SubmittedCondition))
	assert.True(t, conditions.IsFalse(kar, v1alpha1.SubmittedCondition), "it is not as it is templated any more")

	hub.Change(w.berlin.World, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.berlin.Namespace, Name: "web"}},
		func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
	w.AwaitGone(kar, "web")
}

// C11, W19: what a deletion waits for is named once, and its status says on the hub why it hangs.
func TestRemove_showsTheStatusOfWhatHangs(t *testing.T) {
	w := newWorld(t)
	name := w.berlin.Namespace + "-held"
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+", finalizers: [example.com/hold]}}")))
	w.awaitRemote(kar, `{"phase":"Active"}`)
	require.NoError(t, w.Client.Delete(t.Context(), kar))
	hub.Await(w.World, kar, "the status is that from before", func(k *v1alpha1.KubernetesApplicationResource) bool {
		return k.Status.Remote != nil && strings.Contains(string(k.Status.Remote.Raw), `"phase":"Terminating"`)
	})
	assert.Equal(t, "waiting for Namespace "+name+" to be gone", hub.AwaitReason(w.World, kar, v1alpha1.DeletingReason))

	hub.Change(w.berlin.World, &corev1.Namespace{ObjectMeta: named(name)}, func(ns *corev1.Namespace) { ns.Finalizers = nil })
	w.AwaitGone(kar, "web")
}

// W19: while copies of Secrets still hold up a deletion, the status of the object that is gone
// is not shown any more.
func TestRemove_showsNoStatusOfWhatIsGone(t *testing.T) {
	w := newWorld(t)
	w.secret("mysql", "one")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.service("web"), "mysql")))
	w.awaitRemote(kar, `{"loadBalancer":{}}`)
	held := w.berlin.awaitPassword("web-mysql", "one")
	held.Finalizers = []string{"example.com/hold"}
	require.NoError(t, w.berlin.Client.Update(t.Context(), held))

	require.NoError(t, w.Client.Delete(t.Context(), kar))
	hub.Await(w.World, kar, "the status is that of an object which is gone", func(k *v1alpha1.KubernetesApplicationResource) bool {
		return k.Status.Remote == nil && conditions.IsFalse(k, v1alpha1.SubmittedCondition)
	})
	hub.Change(w.berlin.World, held, func(s *corev1.Secret) { s.Finalizers = nil })
	w.AwaitGone(kar, "web")
}

// orphan submits a resource whose application is gone without having deleted it, so that the
// garbage collector does, and waits until that shows.
func (w *world) orphan(secrets ...string) *v1alpha1.KubernetesApplicationResource {
	w.T.Helper()
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"), secrets...)))
	gone := &v1alpha1.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "00000000-0000-0000-0000-000000000001"}}
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) { controlled(k, gone) })
	hub.AwaitReason(w.World, kar, v1alpha1.OwnerMissingReason)
	require.False(w.T, kar.DeletionTimestamp.IsZero())
	return kar
}

// C40: that the application is gone does not say that its objects are not wanted any more.
func TestRemove_ownerMissing(t *testing.T) {
	w := newWorld(t)
	kar := w.orphan()
	assert.True(t, conditions.IsStalled(kar))
	assert.True(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))

	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) { k.OwnerReferences = nil })
	w.AwaitGone(kar, "web")
	assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"), "a user has said what is meant")
}

// C13, C40: the application was recreated, as by a restore of the hub. Its resource of that
// name releases the object without touching it, and the next one takes it up.
func TestRemove_handsOver(t *testing.T) {
	w := newWorld(t)
	kar := w.orphan()
	uid := w.berlin.awaitValue("web", "x").UID
	app := w.application("app", "berlin", "web", kar.Spec.Template)
	w.AwaitGone(kar, "web")
	assert.Equal(t, uid, w.berlin.awaitValue("web", "x").UID)

	again := hub.AwaitReady(w.World, w.submit(controlled(w.resource("web", w.berlin.configMap("web", "y")), app)))
	cm := w.berlin.awaitValue("web", "y")
	assert.Equal(t, uid, cm.UID, "it is the same object")
	assert.Equal(t, string(again.UID), cm.Annotations[v1alpha1.ResourceUIDAnnotation])
}

// C40: an application that was recreated and has no such template does not want the object.
func TestRemove_madeAnewWithoutTheTemplate(t *testing.T) {
	w := newWorld(t)
	kar := w.orphan()
	w.application("app", "berlin", "other", kar.Spec.Template)
	w.AwaitGone(kar, "web")
	assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))
}

// W53, C40: an application that was recreated with another object, or without a Secret, under
// the name of the template does not inherit what the old one delivered: it is deleted.
func TestRemove_madeAnewWithOther(t *testing.T) {
	t.Run("object", func(t *testing.T) {
		w := newWorld(t)
		kar := w.orphan()
		w.application("app", "berlin", "web", template(t, w.berlin.configMap("other", "x")))
		w.AwaitGone(kar, "web")
		assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))
	})
	t.Run("Secrets", func(t *testing.T) {
		w := newWorld(t)
		w.secret("kept", "one")
		w.secret("sql", "one")
		kar := w.orphan("kept", "sql")
		w.application("app", "berlin", "web", kar.Spec.Template, v1alpha1.ResourceSecretReference{Name: "kept"})
		w.AwaitGone(kar, "web")
		assert.False(t, w.berlin.Exists(&corev1.Secret{}, "web-sql"))
		assert.True(t, w.berlin.Exists(&corev1.Secret{}, "web-kept"))
		assert.True(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))
	})
}
