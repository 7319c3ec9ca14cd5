package kubernetesapplicationresource_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// awaitPassword waits until a Secret of the user cluster has a password.
func (u *user) awaitPassword(name, password string) *corev1.Secret {
	u.T.Helper()
	secret := &corev1.Secret{}
	require.True(u.T, u.Eventually(func() bool { return u.Exists(secret, name) && string(secret.Data["password"]) == password }),
		"Secret %s is not as wanted", name)
	return secret
}

// W31, W32, W33, W34: two resources that name one Secret have a copy each, under the documents' names.
func TestSecrets_areCopied(t *testing.T) {
	w := newWorld(t)
	source := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "mysql", Labels: map[string]string{"theirs": "yes"}},
		Type:       corev1.SecretTypeBasicAuth,
		Data:       map[string][]byte{"username": []byte("root"), "password": []byte("one")},
	}
	w.Create(source)
	deployment := hub.AwaitReady(w.World, w.submit(w.resource("wordpress-deployment", w.berlin.configMap("a", "x"), "mysql")))
	hub.AwaitReady(w.World, w.submit(w.resource("backup", w.berlin.configMap("b", "x"), "mysql")))

	made := w.berlin.awaitPassword("wordpress-deployment-mysql", "one")
	assert.Equal(t, source.Data, made.Data)
	assert.Equal(t, source.Type, made.Type)
	assert.Equal(t, string(deployment.UID), made.Annotations[v1alpha1.ResourceUIDAnnotation])
	assert.NotContains(t, made.Labels, "theirs", "nothing but data and type")
	w.berlin.awaitPassword("backup-mysql", "one")
}

func TestSecrets_areRotatedAndKept(t *testing.T) {
	w := newWorld(t)
	source := w.secret("mysql", "one")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"), "mysql")))
	w.berlin.awaitPassword("web-mysql", "one")
	hub.Change(w.World, source, func(s *corev1.Secret) { s.Data["password"] = []byte("two") })
	made := w.berlin.awaitPassword("web-mysql", "two")

	made.Data["password"] = []byte("edited")
	require.NoError(t, w.berlin.Client.Update(t.Context(), made))
	w.berlin.awaitPassword("web-mysql", "two")

	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) { k.Spec.Secrets = nil })
	w.berlin.AwaitGone(made, "web-mysql")
	hub.AwaitReady(w.World, kar)
	require.Len(t, kar.Status.Inventory.Entries, 1)
}

// What cannot be done without its Secrets is not begun, and says which it waits for.
func TestSecrets_areWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.secret("there", "one")
	kar := w.submit(w.resource("web", w.berlin.configMap("web", "x"), "there", "late"))
	hub.Await(w.World, kar, "it never says that only Secret late is missing", func(kar *v1alpha1.KubernetesApplicationResource) bool {
		return conditions.GetReason(kar, v1alpha1.ReadyCondition) == v1alpha1.SecretNotFoundReason &&
			strings.Contains(conditions.GetMessage(kar, v1alpha1.ReadyCondition), "Secret late does not exist in namespace "+w.Namespace)
	})
	assert.Equal(t, v1alpha1.StateFailed, kar.Status.State)
	assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))

	w.secret("late", "two")
	hub.AwaitReady(w.World, kar)
	w.berlin.awaitPassword("web-there", "one")
	w.berlin.awaitPassword("web-late", "two")
	w.berlin.awaitValue("web", "x")
}

// A Secret that is deleted while it is in use stays where it is used, and so does the object.
func TestSecrets_deletedWhileInUse(t *testing.T) {
	w := newWorld(t)
	source := w.secret("mysql", "one")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "wanted"), "mysql")))
	require.NoError(t, w.Client.Delete(t.Context(), source))
	hub.AwaitReason(w.World, kar, v1alpha1.SecretNotFoundReason)
	made := w.berlin.awaitPassword("web-mysql", "one")

	cm := w.berlin.awaitValue("web", "wanted")
	cm.Data["key"] = "edited"
	require.NoError(t, w.berlin.Client.Update(t.Context(), cm))
	w.berlin.awaitValue("web", "wanted")
	w.berlin.awaitPassword("web-mysql", "one")

	require.NoError(t, w.Client.Delete(t.Context(), kar))
	w.AwaitGone(kar, "web")
	w.berlin.AwaitGone(made, "web-mysql")
}

// C36: what leads to a cluster, or to a source, never leaves the hub, and is taken back where
// it came to be that later.
func TestSecrets_thatMayNotLeave(t *testing.T) {
	cases := map[string]struct {
		reason string
		bar    func(*world)
	}{
		"Kubeconfig": {"a KubernetesCluster is reached with it", func(w *world) {
			w.Create(&v1alpha1.KubernetesCluster{ObjectMeta: named("other"), Spec: v1alpha1.KubernetesClusterSpec{
				KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: "mysql"},
			}})
		}},
		"Source": {"the catalog is reached with it", func(w *world) {
			hub.Change(w.World, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "mysql"}}, func(s *corev1.Secret) {
				s.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "helm"}
			})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.secret("mysql", "one")
			kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"), "mysql")))
			tc.bar(w)
			assert.Contains(t, hub.AwaitReason(w.World, kar, v1alpha1.SecretNotPropagatedReason), "mysql", tc.reason)
			w.berlin.AwaitGone(&corev1.Secret{}, "web-mysql")
			assert.True(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"), "the object is kept")

			late := w.submit(w.resource("late", w.berlin.configMap("late", "x"), "mysql"))
			hub.AwaitReason(w.World, late, v1alpha1.SecretNotPropagatedReason)
			assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "late"), "nor is anything begun without it")
			assert.False(t, w.berlin.Exists(&corev1.Secret{}, "late-mysql"))
		})
	}
}

// An object that was refused is not in the cluster: it waits for all of its Secrets.
func TestSecrets_areWaitedForAfterARefusal(t *testing.T) {
	w := newWorld(t)
	w.secret("there", "one")
	kar := w.submit(w.resource("web", "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: "+w.berlin.Namespace+"}, data: 7}", "there"))
	hub.AwaitReason(w.World, kar, v1alpha1.ApplyFailedReason)
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Template = template(t, w.berlin.configMap("web", "x"))
		k.Spec.Secrets = append(k.Spec.Secrets, v1alpha1.ResourceSecretReference{Name: "late"})
	})
	hub.AwaitReason(w.World, kar, v1alpha1.SecretNotFoundReason)
	assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))
	w.secret("late", "two")
	hub.AwaitReady(w.World, kar)
}

// C36, W53: who may write in the user cluster does not decide that a copy outlives its resource.
func TestSecrets_areDeletedWhoeverWantsToKeepThem(t *testing.T) {
	cases := map[string]func(*world, *v1alpha1.KubernetesApplicationResource, *corev1.Secret){
		"Revoked": func(w *world, _ *v1alpha1.KubernetesApplicationResource, source *corev1.Secret) {
			hub.Change(w.World, source, func(s *corev1.Secret) { s.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "git"} })
		},
		"NotNamed": func(w *world, kar *v1alpha1.KubernetesApplicationResource, _ *corev1.Secret) {
			hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) { k.Spec.Secrets = nil })
		},
		"Deleted": func(w *world, kar *v1alpha1.KubernetesApplicationResource, _ *corev1.Secret) {
			require.NoError(w.T, w.Client.Delete(w.T.Context(), kar))
		},
	}
	for name, end := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			source := w.secret("mysql", "one")
			kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"), "mysql")))
			made := w.berlin.awaitPassword("web-mysql", "one")
			hub.Change(w.berlin.World, made, func(s *corev1.Secret) { s.Annotations[v1alpha1.PruneAnnotation] = "disabled" })
			end(w, kar, source)
			w.berlin.AwaitGone(&corev1.Secret{}, "web-mysql")
		})
	}
}

// C36: taking it back does not wait for an object that is refused.
func TestSecrets_areTakenBackFromWhatIsRefused(t *testing.T) {
	w := newWorld(t)
	source := w.secret("mysql", "one")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"), "mysql")))
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Template = template(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: "+w.berlin.Namespace+"}, data: 7}")
	})
	hub.AwaitReason(w.World, kar, v1alpha1.ApplyFailedReason)
	w.berlin.awaitPassword("web-mysql", "one")
	hub.Change(w.World, source, func(s *corev1.Secret) { s.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "git"} })
	w.berlin.AwaitGone(&corev1.Secret{}, "web-mysql")
	w.berlin.awaitValue("web", "x")
}

// C36: a copy is in the cluster also where the object never was, and is not forgotten because the
// spec names its Secret no more.
func TestSecrets_areTakenBackFromWhatNeverWas(t *testing.T) {
	credential := func(s *corev1.Secret) { s.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "git"} }
	drop := func(k *v1alpha1.KubernetesApplicationResource) { k.Spec.Secrets = nil }
	cases := map[string]struct {
		reason string
		end    func(*world, *v1alpha1.KubernetesApplicationResource, *corev1.Secret)
	}{
		"Named": {"although nothing is submitted without it", func(w *world, kar *v1alpha1.KubernetesApplicationResource, source *corev1.Secret) {
			hub.Change(w.World, source, credential)
			hub.AwaitReason(w.World, kar, v1alpha1.SecretNotPropagatedReason)
		}},
		"DroppedBefore": {"nothing that is ours uses it", func(w *world, kar *v1alpha1.KubernetesApplicationResource, _ *corev1.Secret) {
			hub.Change(w.World, kar, drop)
			hub.Await(w.World, kar, "the drop is not seen", func(k *v1alpha1.KubernetesApplicationResource) bool {
				return k.Status.ObservedGeneration == k.Generation
			})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			source := w.secret("mysql", "one")
			w.berlin.Create(&corev1.ConfigMap{ObjectMeta: named("web")})
			kar := w.submit(w.resource("web", w.berlin.configMap("web", "x"), "mysql"))
			hub.AwaitReason(w.World, kar, v1alpha1.ObjectConflictReason)
			w.berlin.awaitPassword("web-mysql", "one")
			tc.end(w, kar, source)
			w.berlin.AwaitGone(&corev1.Secret{}, "web-mysql")
			hub.Await(w.World, kar, tc.reason, func(k *v1alpha1.KubernetesApplicationResource) bool {
				return !slices.ContainsFunc(k.Status.Inventory.Entries, func(e v1alpha1.InventoryEntry) bool { return strings.Contains(e.ID, "web-mysql") })
			})
		})
	}
}

// C58
func TestSecrets_needANamespace(t *testing.T) {
	w := newWorld(t)
	w.secret("mysql", "one")
	name := w.berlin.Namespace + "-role"
	kar := w.submit(w.resource("web", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+name+"}}", "mysql"))
	hub.AwaitReason(w.World, kar, v1alpha1.SecretsNeedNamespaceReason)
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) { k.Spec.Secrets = nil })
	hub.AwaitReady(w.World, kar)
}

// W52 goes for copies of Secrets too.
func TestSecrets_leaveWhatIsNotOursAlone(t *testing.T) {
	w := newWorld(t)
	w.secret("mysql", "ours")
	w.berlin.Create(&corev1.Secret{ObjectMeta: named("web-mysql"), Data: map[string][]byte{"password": []byte("theirs")}})
	kar := w.submit(w.resource("web", w.berlin.configMap("web", "x"), "mysql"))
	message := hub.AwaitReason(w.World, kar, v1alpha1.ObjectConflictReason)
	assert.Contains(t, message, "Secret "+w.berlin.Namespace+"/web-mysql")
	assert.Contains(t, message, "; delete that Secret, or give the resource template another name")
	assert.NotContains(t, message, v1alpha1.AdoptAnnotation, "a copy has no manifest to annotate")
	w.berlin.awaitPassword("web-mysql", "theirs")
}

// No secret stands in anything that others may read.
func TestSecrets_areNotTold(t *testing.T) {
	w := newWorld(t)
	w.secret("mysql", "hunter2")
	kar := w.submit(w.resource("web", w.berlin.configMap("web", "x"), "mysql"))
	hub.AwaitReady(w.World, kar)
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Template = template(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: "+w.berlin.Namespace+"}, data: 7}")
	})
	hub.AwaitReason(w.World, kar, v1alpha1.ApplyFailedReason)
	w.assertUntold("hunter2", "aHVudGVyMg")
}

func (w *world) assertUntold(texts ...string) {
	w.T.Helper()
	resources, events := &v1alpha1.KubernetesApplicationResourceList{}, &eventsv1.EventList{}
	for _, list := range []client.ObjectList{resources, events} {
		require.NoError(w.T, w.Client.List(w.T.Context(), list, client.InNamespace(w.Namespace)))
		text, err := json.Marshal(list)
		require.NoError(w.T, err)
		for _, secret := range texts {
			assert.NotContains(w.T, string(text), secret)
		}
	}
}

// The type of a Secret cannot be changed: the copy of one that was recreated is recreated too.
func TestSecrets_madeAnewWithAnotherType(t *testing.T) {
	w := newWorld(t)
	source := w.secret("mysql", "one")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"), "mysql")))
	w.berlin.awaitPassword("web-mysql", "one")
	require.NoError(t, w.Client.Delete(t.Context(), source))
	w.Create(&corev1.Secret{ObjectMeta: named("mysql"), Type: "example.com/other", Data: map[string][]byte{"password": []byte("two")}})
	w.berlin.awaitPassword("web-mysql", "two")
	copied := &corev1.Secret{}
	require.True(t, w.berlin.Exists(copied, "web-mysql"))
	assert.Equal(t, corev1.SecretType("example.com/other"), copied.Type)
	hub.AwaitReady(w.World, kar)
}
