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
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/test/hub"
)

// W16, W23, W42, W50, C13
func TestResource_bringsItsObject(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "one"))))
	cm := w.berlin.awaitValue("web", "one")
	assert.Equal(t, string(kar.UID), cm.Annotations[v1alpha1.ResourceUIDAnnotation])
	owner, ok := apply.OwnerOf(cm)
	require.True(t, ok)
	assert.Equal(t, apply.Owner{HubID: w.process.HubID, Kind: v1alpha1.KubernetesApplicationResourceKind, Namespace: w.Namespace, Name: "web"}, owner)

	assert.Equal(t, v1alpha1.StateSubmitted, kar.Status.State)
	assert.True(t, conditions.IsTrue(kar, v1alpha1.SubmittedCondition))
	assert.Equal(t, w.berlin.Namespace, kar.Status.Namespace)
	assert.Nil(t, kar.Status.Remote, "a ConfigMap has no status (W20)")
	assert.Contains(t, kar.Finalizers, v1alpha1.Finalizer)
}

// W58
func TestResource_followsItsTemplate(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "one"))))
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Template = template(t, w.berlin.configMap("web", "two"))
	})
	w.berlin.awaitValue("web", "two")
	hub.AwaitReady(w.World, kar)
}

// W25, W27, W28, W30, C12
func TestResource_scopes(t *testing.T) {
	cases := map[string]struct {
		reason, manifest, namespace string
	}{
		"NoNamespace": {
			reason:    "a namespaced object without a namespace goes to default",
			manifest:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}}",
			namespace: "default",
		},
		"ClusterScoped": {
			reason:   "an object without namespaces has none",
			manifest: "{apiVersion: v1, kind: Namespace, metadata: {name: NAME}}",
		},
		"ClusterScopedWithNamespace": {
			reason:   "a namespace that makes no sense is ignored, as the API server does it",
			manifest: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAME, namespace: nowhere}}",
		},
	}
	w := newWorld(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			name = strings.ToLower(name)
			manifest := strings.ReplaceAll(tc.manifest, "NAME", w.berlin.Namespace+"-"+name)
			kar := hub.AwaitReady(w.World, w.submit(w.resource(name, manifest)))
			assert.Equal(t, tc.namespace, kar.Status.Namespace, tc.reason)
			object := parse(t, manifest)
			require.True(t, w.berlin.ExistsIn(tc.namespace, object, object.GetName()), tc.reason)
			require.NoError(t, w.Client.Delete(t.Context(), kar))
			w.AwaitGone(kar, kar.Name)
			assert.True(t, w.berlin.Eventually(func() bool { return !w.berlin.ExistsIn(tc.namespace, object, object.GetName()) }))
		})
	}
}

// W41
func TestResource_waitsToBeScheduled(t *testing.T) {
	w := newWorld(t)
	kar := w.resource("web", w.berlin.configMap("web", "one"))
	kar.Spec.ClusterName = ""
	w.submit(kar)
	hub.AwaitReason(w.World, kar, v1alpha1.NotScheduledReason)
	assert.Equal(t, v1alpha1.StatePending, kar.Status.State)
	assert.Empty(t, kar.Finalizers, "there is nothing to hold it for")

	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) { k.Spec.ClusterName = "berlin" })
	hub.AwaitReady(w.World, kar)
	w.berlin.awaitValue("web", "one")
}

// P12, W23: what the cluster refuses stands in the condition, word for word.
func TestResource_saysWhatTheClusterRefused(t *testing.T) {
	w := newWorld(t)
	kar := w.submit(w.resource("web", "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: "+w.berlin.Namespace+"}, spec: {ports: [{port: 70000}]}}"))
	message := hub.AwaitReason(w.World, kar, v1alpha1.ApplyFailedReason)
	err := w.berlin.Client.Create(t.Context(), parse(t, "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: "+w.berlin.Namespace+"}, spec: {ports: [{port: 70000}]}}"))
	require.Error(t, err)
	assert.Contains(t, message, err.Error())
	assert.Equal(t, message, conditions.GetMessage(kar, v1alpha1.SubmittedCondition))
	assert.Equal(t, v1alpha1.StateFailed, kar.Status.State)

	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Template = template(t, w.berlin.service("web"))
	})
	hub.AwaitReady(w.World, kar)
}

// P14: an immutable field of the object shows as a clear and stable error.
func TestResource_immutableField(t *testing.T) {
	w := newWorld(t)
	secret := func(kind string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: web, namespace: " + w.berlin.Namespace + "}, type: " + kind + "}"
	}
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", secret("example.com/a"))))
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Template = template(t, secret("example.com/b"))
	})
	assert.Contains(t, hub.AwaitReason(w.World, kar, v1alpha1.ApplyFailedReason), "field is immutable")
}

func TestResource_putsDriftRight(t *testing.T) {
	w := newWorld(t)
	hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "wanted"))))
	cm := w.berlin.awaitValue("web", "wanted")
	cm.Data = map[string]string{"key": "edited", "other": "theirs"}
	require.NoError(t, w.berlin.Client.Update(t.Context(), cm))
	assert.Equal(t, "theirs", w.berlin.awaitValue("web", "wanted").Data["other"], "what others add is no drift")

	uid := cm.UID
	require.NoError(t, w.berlin.Client.Delete(t.Context(), cm))
	require.True(t, w.berlin.Eventually(func() bool { return w.berlin.Exists(cm, "web") && cm.UID != uid }), "it is made anew")
}

// Two that want different things of one object do not take turns as fast as they can.
func TestResource_slowsDownInAFight(t *testing.T) {
	w := newWorld(t)
	cases := map[string]func(*corev1.ConfigMap) error{
		"changes": func(cm *corev1.ConfigMap) error {
			cm.Data["key"] = "theirs"
			return w.berlin.Client.Update(t.Context(), cm)
		},
		"deletes": func(cm *corev1.ConfigMap) error { return w.berlin.Client.Delete(t.Context(), cm) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			kar := hub.AwaitReady(w.World, w.submit(w.resource(name, w.berlin.configMap(name, "wanted"))))
			for range 5 {
				cm := w.berlin.awaitValue(name, "wanted")
				require.NoError(t, spoil(cm))
			}
			hub.Await(w.World, kar, "the fight is not told of", func(k *v1alpha1.KubernetesApplicationResource) bool {
				return strings.Contains(conditions.GetMessage(k, v1alpha1.ReadyCondition), "another field manager keeps changing or deleting it there")
			})
			w.berlin.awaitValue(name, "wanted")
		})
	}
}

// W52, C13
func TestResource_leavesWhatIsNotOursAlone(t *testing.T) {
	w := newWorld(t)
	w.berlin.Create(&corev1.ConfigMap{ObjectMeta: named("web"), Data: map[string]string{"key": "theirs"}})
	kar := w.submit(w.resource("web", w.berlin.configMap("web", "ours")))
	assert.Contains(t, hub.AwaitReason(w.World, kar, v1alpha1.ObjectConflictReason), v1alpha1.AdoptAnnotation, "the way out is named")
	assert.Equal(t, v1alpha1.StateFailed, kar.Status.State)
	w.berlin.awaitValue("web", "theirs")

	require.NoError(t, w.Client.Delete(t.Context(), kar))
	w.AwaitGone(kar, "web")
	w.berlin.awaitValue("web", "theirs")
}

// C13: taking over needs the annotation on the resource template.
func TestResource_adopts(t *testing.T) {
	w := newWorld(t)
	w.berlin.Create(&corev1.ConfigMap{ObjectMeta: named("web"), Data: map[string]string{"key": "theirs"}})
	kar := w.submit(w.resource("web", w.berlin.configMap("web", "ours")))
	hub.AwaitReason(w.World, kar, v1alpha1.ObjectConflictReason)
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		metav1.SetMetaDataAnnotation(&k.ObjectMeta, v1alpha1.AdoptAnnotation, "true")
	})
	hub.AwaitReady(w.World, kar)
	w.berlin.awaitValue("web", "ours")
}

// W51: the first owns, the second reports, and takes its turn when the first is gone.
func TestResource_twoTemplatesOfOneObject(t *testing.T) {
	w := newWorld(t)
	first := hub.AwaitReady(w.World, w.submit(w.resource("first", w.berlin.service("web"))))
	hub.Await(w.World, first, "no status", func(k *v1alpha1.KubernetesApplicationResource) bool { return k.Status.Remote != nil })
	second := w.submit(w.resource("second", w.berlin.service("web")))
	assert.Contains(t, hub.AwaitReason(w.World, second, v1alpha1.ObjectConflictReason), "KubernetesApplicationResource "+w.Namespace+"/first")
	assert.Nil(t, second.Status.Remote, "the status is the owner's to show")

	require.NoError(t, w.Client.Delete(t.Context(), first))
	w.AwaitGone(first, "first")
	hub.AwaitReady(w.World, second)
	service := &corev1.Service{}
	require.True(t, w.berlin.Exists(service, "web"))
	assert.Equal(t, string(second.UID), service.Annotations[v1alpha1.ResourceUIDAnnotation])
}
